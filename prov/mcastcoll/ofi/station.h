// A station is what one endpoint needs for collectives: its rendezvous socket, its private inner endpoint,
// its multicast sockets and its groups. It is opened by the first join, so that an application that never
// joins pays nothing. All calls are made with the domain's lock held.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_collective.h>

#include <memory>

#include "base/result.h"
#include "ofi/request.h"

namespace mcastcoll::ofi {

struct Endpoint;

class Station {
  public:
    static Result<std::unique_ptr<Station>> open(Endpoint& endpoint);
    virtual ~Station() = default;

    // fi_join with FI_COLLECTIVE: starts the join and returns; FI_JOIN_COMPLETE or an error follows on the
    // event queue.
    virtual int join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context) = 0;
    // Begins one operation. 0, the completion goes to the endpoint's queue, or -FI_E*: nothing was begun.
    // -FI_ENOSYS depends on the group's shape and the kind only, so that all members get it, or none.
    virtual ssize_t collective(const Request& request) = 0;

    // True while the application holds a group: the endpoint may not go from under it.
    virtual bool has_open_groups() const = 0;

    // Moves everything that can move without blocking.
    virtual void progress() = 0;
    // True while an operation, a join or a closing group needs progress on every call.
    virtual bool busy() const = 0;
    // A descriptor that polls readable when progress() has something to do, timers included.
    virtual int wait_descriptor() const = 0;
    // Called before sleeping on wait_descriptor(). False: something is pending already, do not sleep.
    virtual bool prepare_wait() = 0;
};

}  // namespace mcastcoll::ofi
