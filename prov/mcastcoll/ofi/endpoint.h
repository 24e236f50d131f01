// Our share of an endpoint: what is bound to it, and from its first join on its station.
//
// The inner provider's fid_ep is the application's; this object hangs on its grafted tables and goes with its
// close, and the station with it.
#pragma once

#include <rdma/fi_endpoint.h>

#include "ofi/av.h"
#include "ofi/bound_endpoint.h"
#include "ofi/fabric.h"

namespace mcastcoll::ofi {

class Station;

struct Endpoint final : BoundEndpoint {
    // Everything that takes memory is done here, before there is an inner endpoint: some cannot be closed
    // again before they are bound.
    Endpoint(Domain& its_domain, InfoOwner inner_info);
    // Puts our tables on; the inner endpoint's close() deletes it.
    static void graft(std::unique_ptr<Endpoint> endpoint, fid_ep& inner);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    Domain& domain;
    std::unique_ptr<Station> station;
    std::shared_ptr<ProgressThread> thread;  // moves the station, too

    Graft<fi_ops> object_graft;
    Graft<fi_ops_cm> cm_graft;
    Graft<fi_ops_collective> collective_graft;
};

}  // namespace mcastcoll::ofi
