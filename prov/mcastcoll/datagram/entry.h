// The way in: the calls of fabrics, domains and endpoints. Opening leads from each of them to all objects of
// this folder, so what knows all of them is here, and none of them includes this.
#pragma once

#include <rdma/fabric.h>

namespace mcastcoll::ofi::datagram {

// 0, or -FI_E*.
int open_fabric(const fi_fabric_attr& attr, fid_fabric** fabric, void* context);

}  // namespace mcastcoll::ofi::datagram
