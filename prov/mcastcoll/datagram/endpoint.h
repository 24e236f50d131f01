// A datagram endpoint with multicast over UDP. A message has been sent when the call returns, so its
// completion is written at once. Received messages are taken from the sockets when the application reads the
// queue or counter bound for receiving. A message is the payload of one datagram; the provider adds no
// header.
#pragma once

#include <rdma/fi_endpoint.h>

#include <unordered_map>

#include "datagram/address_vector.h"
#include "datagram/channel.h"
#include "datagram/event_queue.h"
#include "datagram/inbox.h"
#include "datagram/reliable.h"
#include "datagram/source.h"
#include "datagram/waiter.h"
#include "provider/info_owner.h"
#include "transport/verbs_transport.h"

namespace mcastcoll::datagram {

// A joined group, stored in its Membership.
struct Joined {
    const transport::SocketAddress group;
    bool may_send;
    std::shared_ptr<FileDescriptor> socket;  // null for a member that only sends, and after a failed join
    transport::Membership share;             // the queue pair's membership, if groups use verbs
    std::unique_ptr<Reliable::Group> reliable_group;  // for reliable messages
};

class Endpoint final : public Object<Endpoint, fid_ep, FI_CLASS_EP, Domain>, public Source {
  public:
    // address: the address to bind, as the application requested it.
    Endpoint(Domain& domain, provider::InfoOwner info, const transport::SocketAddress& address,
             void* context);
    ~Endpoint();

    // Operations of libfabric's tables; return 0 or -FI_E*.
    int bind(Handle* other, std::uint64_t flags);
    int control(int command, void* argument);
    int set_name(void* address, std::size_t length);
    int get_name(void* address, std::size_t* length);
    struct Message {
        Pieces pieces;
        fi_addr_t to;
        void* context;
        std::uint64_t flags;
        bool silent = false;  // injected: no completion
    };
    ssize_t send(const Message& message);
    ssize_t post(Pieces pieces, void* context, std::uint64_t flags);
    ssize_t cancel(void* context);
    // Default flags, for calls without a flags argument.
    std::uint64_t send_flags() const { return sent_.default_flags; }
    std::uint64_t receive_flags() const { return received_.default_flags; }

    // Used by memberships.
    std::mutex& mutex() const { return parent().mutex; }
    int family() const { return address_.family(); }
    bool enabled() const { return socket_.valid(); }
    EventQueue* events() const { return events_.get(); }
    std::uint64_t directions() const { return directions_; }  // FI_SEND, FI_RECV
    Receiver& receiver() { return received_.receiver; }
    // Null for an endpoint of datagrams.
    Reliable* reliable() { return reliable_.get(); }
    // Null if groups use UDP.
    transport::VerbsTransport* verbs() { return verbs_.get(); }
    fi_addr_t number_of(const transport::SocketAddress& peer) const { return addresses_->find(peer); }
    // The socket that earlier joins of the group opened, or null. The lock must be held.
    std::shared_ptr<FileDescriptor> socket_of(const transport::SocketAddress& group) const;
    // Assigns a group address (fi_addr_t), valid until remove().
    fi_addr_t add(const Joined& joined) {
        joined_.emplace(next_group_, &joined);
        return next_group_++;
    }
    void remove(fi_addr_t group) { joined_.erase(group); }

    void receive() override;
    void watch() override;

  private:
    template <typename Target>
    int complete_to(Target& target, std::shared_ptr<Target> Channel::*place, std::uint64_t flags);
    int enable();
    Result<FileDescriptor> open_socket() const;
    int operation_flags(std::uint64_t* flags, bool set);
    void wake();
    bool is_own(const transport::SocketAddress& source) const;
    // Both functions return 0 or -FI_E*.
    int send_to_peer(fi_addr_t to, Pieces pieces) const;
    int send_to_group(fi_addr_t to, Pieces pieces, std::size_t size);

    const provider::InfoOwner info_;
    // The bound address; before fi_enable(), the address that the application requested.
    transport::SocketAddress address_;
    const std::uint64_t directions_;
    std::size_t max_message_;
    std::shared_ptr<EventQueue> events_;
    std::shared_ptr<AddressVector> addresses_;
    Channel sent_;
    Inbox received_;
    FileDescriptor socket_;
    std::unique_ptr<Reliable> reliable_;
    std::unique_ptr<transport::VerbsTransport> verbs_;
    std::vector<std::byte> gathered_;
    // Queues and counters whose sleeping threads must wake when this endpoint's sockets receive data.
    std::vector<Waiter*> waiters_;
    bool watched_ = false;
    // Distinguishes addresses of groups from addresses of an address vector.
    fi_addr_t next_group_ = fi_addr_t{1} << 62;
    std::unordered_map<fi_addr_t, const Joined*> joined_;
};

}  // namespace mcastcoll::datagram
