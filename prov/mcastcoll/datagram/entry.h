// The entry point: operations of fabrics, domains and endpoints. These operations open objects of all classes
// of this folder, so this code depends on all classes, and no class includes this header.
#pragma once

#include <rdma/fabric.h>

namespace mcastcoll::datagram {

// Returns 0 or -FI_E*.
int open_fabric(const fi_fabric_attr& attr, fid_fabric** fabric, void* context);

}  // namespace mcastcoll::datagram
