// What endpoints of this kind do not have: tagged messages, RMA, atomics, collectives. Applications that call
// them anyway get -FI_ENOSYS.
#pragma once

#include <rdma/fi_endpoint.h>

namespace mcastcoll::ofi::datagram {

void set_absent(fid_ep& endpoint);

}  // namespace mcastcoll::ofi::datagram
