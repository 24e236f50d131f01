// A domain of datagram endpoints.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <mutex>

#include "datagram/fabric.h"
#include "datagram/object.h"
#include "provider/settings.h"
#include "transport/interface.h"

namespace mcastcoll::datagram {

// One network interface, and the common lock of the domain's endpoints, queues, counters and address vectors.
struct Domain : Object<Domain, fid_domain, FI_CLASS_DOMAIN, Fabric> {
    Domain(Fabric& fabric, transport::Interface of, bool verbs, void* context)
        : Object(fabric.shared_from_this(), context), interface(std::move(of)), over_verbs(verbs) {}

    const transport::Interface interface;
    // The domain is named after an RDMA device, which carries its groups.
    const bool over_verbs;
    const provider::Settings settings = provider::provider_settings();
    std::mutex mutex;
};

}  // namespace mcastcoll::datagram
