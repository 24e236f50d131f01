#include "provider/key_file.h"

#include "base/secret_file.h"

namespace mcastcoll::ofi {

std::optional<std::string> munge_socket(const std::string& value) {
    constexpr std::string_view kScheme = "munge:";
    if (!value.starts_with(kScheme)) return {};
    return value.substr(kScheme.size());
}

Result<wire::JoinKey> read_key_file(const std::string& path) {
    if (path.empty()) return wire::JoinKey();
    auto secret = read_secret_file(path);
    if (!secret) return secret.error();
    wire::JoinKey key = wire::derive({}, "key file", secret.value());
    wire::wipe(secret.value());
    return key;
}

}  // namespace mcastcoll::ofi
