// A fabric of datagram endpoints with multicast, and its domains: our own from top to bottom, nothing of it
// is an inner provider's. It exists only for applications that ask fi_getinfo() for FI_MULTICAST.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <mutex>

#include "datagram/object.h"
#include "provider/settings.h"
#include "transport/interface.h"

namespace mcastcoll::ofi::datagram {

// Nothing is its parent.
struct Fabric : Object<Fabric, fid_fabric, FI_CLASS_FABRIC, Fabric> {
    using Object::Object;
};

// One network interface, and the one lock under which endpoints, queues, counters and address vectors of the
// domain work.
struct Domain : Object<Domain, fid_domain, FI_CLASS_DOMAIN, Fabric> {
    Domain(Fabric& fabric, Interface of, bool verbs, void* context)
        : Object(fabric.shared_from_this(), context), interface(std::move(of)), over_verbs(verbs) {}

    const Interface interface;
    // Its name is an RDMA device's: groups go over that.
    const bool over_verbs;
    const Settings settings = provider_settings();
    std::mutex mutex;
};

}  // namespace mcastcoll::ofi::datagram
