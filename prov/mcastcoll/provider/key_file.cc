#include "provider/key_file.h"

#include "base/secret_file.h"

namespace mcastcoll::ofi {

Result<wire::JoinKey> read_key_file(const std::string& path) {
    if (path.empty()) return wire::JoinKey();
    const auto secret = read_secret_file(path);
    if (!secret) return secret.error();
    return wire::JoinKey(wire::derive({}, "key file", secret.value()));
}

}  // namespace mcastcoll::ofi
