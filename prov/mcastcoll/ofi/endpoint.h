// Our share of an endpoint: what is bound to it, and from its first join on its station.
//
// The inner provider's fid_ep is the application's; this object hangs on its grafted tables and goes with its
// close, and the station with it. What a station needs of the endpoint is here.
#pragma once

#include <rdma/fi_endpoint.h>

#include "ofi/av.h"
#include "ofi/queues.h"

namespace mcastcoll::ofi {

class Station;

struct Endpoint {
    // Everything that takes memory is done here, before there is an inner endpoint: some cannot be closed
    // again before they are bound. The info is as the inner provider knows it.
    Endpoint(Domain& its_domain, InfoOwner inner_info);
    // Puts our tables on; the inner endpoint's close() deletes it.
    static void graft(std::unique_ptr<Endpoint> endpoint, fid_ep& inner);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    // That all calls of a station need.
    std::unique_lock<std::mutex> lock() { return std::unique_lock(domain.fabric().mutex()); }

    Domain& domain;
    const InfoOwner info;
    fid_ep* inner = nullptr;
    fid_av* av = nullptr;
    fid_eq* eq = nullptr;
    Cq* tx = nullptr;
    bool selective = false;  // completions of success only when asked for
    std::unique_ptr<Station> station;
    std::shared_ptr<ProgressThread> thread;  // moves the station, too

    Graft<fi_ops> object_graft;
    Graft<fi_ops_cm> cm_graft;
    Graft<fi_ops_collective> collective_graft;
};

}  // namespace mcastcoll::ofi
