// Replaces UD multicast in builds without rdma-core.
#include <cerrno>

#include "transport/verbs_transport.h"

namespace mcastcoll::transport {

Result<std::unique_ptr<VerbsTransport>> open_verbs(const VerbsOptions&) {
    return Error{ENOSYS, "built without rdma-core"};
}

}  // namespace mcastcoll::transport
