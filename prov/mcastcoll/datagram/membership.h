// An endpoint's part in a multicast group: what fi_join() makes and fi_close() of the group ends. Joins of
// one group by one endpoint share the socket, lest a message come twice.
#pragma once

#include <rdma/fi_cm.h>

#include "datagram/endpoint.h"

namespace mcastcoll::ofi::datagram {

class Membership : public Object<Membership, fid_mc, FI_CLASS_MC, Endpoint> {
  public:
    // fi_join(). Whatever the system says of the join is told by the event queue.
    static int join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** mc, void* context);
    Membership(Endpoint& endpoint, const SocketAddress& group, bool may_send, void* context);
    // For fi_close(), before it is deleted.
    void finish();

  private:
    // With the endpoint's lock held.
    Result<void> listen(bool receives);
    void leave();
    Result<void> probe(std::unique_lock<std::mutex>& lock, std::uint64_t directions);
    void linger(std::unique_lock<std::mutex>& lock);
    void turn(std::unique_lock<std::mutex>& lock);
    bool tell(const Result<void>& joined);
    void tell_lost(const SocketAddress& member, feed::Loss how);
    bool tell_error(std::uint32_t event, int code, std::uint64_t data);

    Joined joined_;
};

}  // namespace mcastcoll::ofi::datagram
