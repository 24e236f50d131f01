// Our share of an endpoint: what is bound to it, and from its first join on its station.
//
// The inner provider's fid_ep is the application's; this object hangs on its grafted tables and goes with its
// close, and the station with it. What a station needs of the endpoint is here: the bound objects, and
// completing operations.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "ofi/av_set.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/graft.h"
#include "ofi/inner.h"
#include "provider/fid_owner.h"
#include "provider/info.h"

namespace mcastcoll::ofi {

class Station;

struct Endpoint {
    // Everything that takes memory is done before there is an inner endpoint: some cannot be closed again
    // before they are bound. The info is as the inner provider knows it.
    static std::unique_ptr<Endpoint> prepare(Domain& domain, InfoOwner info);
    // Puts our tables on; the inner endpoint's close() deletes it.
    static void graft(std::unique_ptr<Endpoint> endpoint, fid_ep& inner);

    Endpoint(Domain& its_domain, InfoOwner inner_info);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    // For the station; with the lock held. What is reserved is either released or completed.
    bool reserve_completion() { return tx->reserve(); }
    void release_completion() { tx->release(); }
    // status is 0 or a positive FI_E* code; flags are the operation's.
    void complete(void* op_context, std::uint64_t flags, int status);

    fid_ep* inner = nullptr;
    InfoOwner owned_info;
    const fi_info* info;
    Domain* domain;
    fid_av* av = nullptr;
    fid_eq* eq = nullptr;
    Cq* tx = nullptr;
    Cq* rx = nullptr;
    bool selective = false;  // completions of success only when asked for
    std::unique_ptr<Station> station;
    std::atomic<bool> automatic{false};  // the fabric's thread moves the station, too

    Graft<fi_ops> object_graft;
    Graft<fi_ops_cm> cm_graft;
    Graft<fi_ops_collective> collective_graft;
};

// Makes every collective of the table ours (ofi/collective.cc).
void set_collectives(fi_ops_collective& table);

// The lock that all calls of a station need.
class EndpointLock {
  public:
    explicit EndpointLock(Endpoint& endpoint) : lock_(endpoint.domain->fabric().mutex()) {}

  private:
    std::lock_guard<std::mutex> lock_;
};

}  // namespace mcastcoll::ofi
