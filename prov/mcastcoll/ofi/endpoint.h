// The provider's part of an endpoint: the objects bound to it and, from its first join, its collective
// endpoint (CollectiveEndpoint).
//
// The application holds the inner provider's fid_ep. This object is reached through the grafted tables of the
// fid_ep. Closing the fid_ep deletes this object and its CollectiveEndpoint.
#pragma once

#include <rdma/fi_endpoint.h>

#include "ofi/bound_endpoint.h"
#include "ofi/domain.h"
#include "ofi/progress_thread.h"

namespace mcastcoll::ofi {

class CollectiveEndpoint;

struct Endpoint final : BoundEndpoint {
    // Allocates all memory before the inner endpoint exists, because some inner endpoints cannot be closed
    // before objects are bound.
    Endpoint(Domain& its_domain, provider::InfoOwner inner_info);
    // Installs the provider's tables; the inner endpoint's close() deletes the object.
    static void graft(std::unique_ptr<Endpoint> endpoint, fid_ep& inner);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    Domain& domain;
    std::unique_ptr<CollectiveEndpoint> collective_endpoint;
    std::shared_ptr<ProgressThread> thread;  // makes progress without calls of the application

    Graft<fi_ops> object_graft;
    Graft<fi_ops_cm> cm_graft;
    Graft<fi_ops_collective> collective_graft;
};

}  // namespace mcastcoll::ofi
