// For builds without PMIx.
#include "hostset/launcher.h"

namespace mcastcoll::hostset {

bool is_launched() {
    return false;
}

Result<Launched> connect_launcher(unsigned) {
    return Error{ENOSYS, "built without PMIx"};
}

Result<std::string> publish_from_head(const Launched&, const std::string&) {
    return Error{ENOSYS, "built without PMIx"};
}

}  // namespace mcastcoll::hostset
