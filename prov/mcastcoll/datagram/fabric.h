// A fabric of datagram endpoints with multicast. No inner provider takes part. Fabrics of this class exist
// only for applications that request FI_MULTICAST from fi_getinfo().
#pragma once

#include <rdma/fabric.h>

#include "datagram/object.h"

namespace mcastcoll::datagram {

// A fabric is opened in no other object: its parent pointer is null.
struct Fabric : Object<Fabric, fid_fabric, FI_CLASS_FABRIC, Fabric> {
    using Object::Object;
};

}  // namespace mcastcoll::datagram
