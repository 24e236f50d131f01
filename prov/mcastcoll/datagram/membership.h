// An endpoint's part in a multicast group: what fi_join() makes and fi_close() of the group ends. Joins of
// one group by one endpoint share the socket, lest a message come twice.
#pragma once

#include <rdma/fi_cm.h>

#include "datagram/fabric.h"
#include "datagram/reliable.h"

namespace mcastcoll::ofi::datagram {

class Endpoint;

class Membership : public Object<Membership, fid_mc, FI_CLASS_MC, Endpoint> {
  public:
    // fi_join(). Whatever the system says of the join is told by the event queue.
    static int join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** mc, void* context);
    Membership(Endpoint& endpoint, const SocketAddress& group, bool may_send, void* context);
    // For fi_close(), before it is deleted.
    void finish();

    const SocketAddress& group() const { return group_; }
    bool may_send() const { return may_send_; }
    // Null when it only sends, or could not be joined.
    const std::shared_ptr<FileDescriptor>& socket() const { return socket_; }
    // Of reliable messages. 0, or -FI_E*.
    int send_reliably(Pieces pieces, std::size_t size) const { return feed_->send(pieces, size); }
    void tell_lost(const SocketAddress& member, feed::Loss how);

  private:
    // With the endpoint's lock held.
    Result<void> listen(bool receives);
    void leave();
    Result<void> probe(std::unique_lock<std::mutex>& lock, bool receives);
    void linger(std::unique_lock<std::mutex>& lock);
    void turn(std::unique_lock<std::mutex>& lock);
    bool tell(const Result<void>& joined);
    bool tell_error(std::uint32_t event, int code, std::uint64_t data);

    const SocketAddress group_;
    bool may_send_;
    std::shared_ptr<FileDescriptor> socket_;
    ::mcastcoll::Membership share_;          // over verbs
    std::unique_ptr<Reliable::Group> feed_;  // of reliable messages
};

}  // namespace mcastcoll::ofi::datagram
