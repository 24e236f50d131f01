// No station yet: joins say so.
#include <rdma/fi_errno.h>

#include "ofi/station.h"

namespace mcastcoll::ofi {

Result<std::unique_ptr<Station>> Station::open(Endpoint&) {
    return Error{FI_ENOSYS, "collectives are not there yet"};
}

}  // namespace mcastcoll::ofi
