// An endpoint's membership in a multicast group, from fi_join() to fi_close(). Joins of one group by one
// endpoint share the socket, so that each message is delivered once.
#pragma once

#include <rdma/fi_cm.h>

#include "datagram/endpoint.h"

namespace mcastcoll::datagram {

class Membership : public Object<Membership, fid_mc, FI_CLASS_MC, Endpoint> {
  public:
    // Implements fi_join(). The event queue reports whether the system has joined the group.
    static int join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** mc, void* context);
    Membership(Endpoint& endpoint, const transport::SocketAddress& group, bool may_send, void* context);
    // Called by fi_close() before the object is deleted.
    void finish();

  private:
    // All functions need the endpoint's lock; turn() releases the lock while it waits.
    Result<void> listen(bool receives);
    void leave();
    Result<void> probe(std::unique_lock<std::mutex>& lock, std::uint64_t directions);
    void linger(std::unique_lock<std::mutex>& lock);
    void turn(std::unique_lock<std::mutex>& lock);
    bool report(const Result<void>& joined);
    void report_lost(const transport::SocketAddress& member, reliable::Loss how);
    bool report_error(std::uint32_t event, int code, std::uint64_t data);

    Joined joined_;
};

}  // namespace mcastcoll::datagram
