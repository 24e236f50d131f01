// Memory registration, which datagram endpoints do not need (their mr_mode is 0), but portable applications
// do anyway.
#pragma once

#include <rdma/fi_domain.h>

namespace mcastcoll::ofi::datagram {

fi_ops_mr& memory_operations();

}  // namespace mcastcoll::ofi::datagram
