#include "provider/key_file.h"

#include <cerrno>

#include "base/secret_file.h"
#include "base/undumped.h"

namespace mcastcoll::provider {

std::optional<std::string> munge_socket(const std::string& value) {
    constexpr std::string_view kScheme = "munge:";
    if (!value.starts_with(kScheme)) return {};
    return value.substr(kScheme.size());
}

Result<std::shared_ptr<const wire::Key>> read_key_file(const std::string& path) {
    if (path.empty()) return std::shared_ptr<const wire::Key>();
    auto secret = read_secret_file(path);
    if (!secret) return secret.error();
    auto key = make_undumped(wire::derive({}, "key file", secret.value()));
    wire::wipe(secret.value());
    if (!key) return Error{ENOMEM, "no memory for the key"};
    return key;
}

}  // namespace mcastcoll::provider
