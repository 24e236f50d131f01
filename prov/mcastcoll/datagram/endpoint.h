// A datagram endpoint with multicast over UDP. What is sent is on its way when the call returns, so its
// completion is there at once; what comes is taken from the sockets whenever somebody reads the queue or the
// counter that it completes to. A message is the payload of one datagram, with nothing of ours around it.
#pragma once

#include <rdma/fi_endpoint.h>

#include <mutex>
#include <unordered_map>

#include "datagram/address_vector.h"
#include "datagram/completion_queue.h"
#include "datagram/counter.h"
#include "datagram/domain.h"
#include "datagram/event_queue.h"
#include "datagram/membership.h"
#include "datagram/receiver.h"
#include "datagram/reliable.h"
#include "datagram/verbs_groups.h"
#include "provider/owners.h"

namespace mcastcoll::ofi::datagram {

class Endpoint : public fid_ep, private Reliable::Owner {
  public:
    static int open(Domain& domain, const fi_info* info, fid_ep** endpoint, void* context);

    // The address is as the application says. The tables are empty.
    Endpoint(Domain& domain, InfoOwner info, const SocketAddress& address);
    virtual ~Endpoint();

    // For the tables of calls: 0 or -FI_E*.
    int bind(Handle& other, std::uint64_t flags);
    int enable();
    int operation_flags(std::uint64_t* flags, bool set);
    int set_name(const SocketAddress& wanted);
    SocketAddress name() const;
    // Before it is deleted: -FI_EBUSY while it is in groups.
    int detach();
    struct Message {
        const iovec* pieces;
        std::size_t count;
        fi_addr_t to;
        void* context;
        std::uint64_t flags;
        bool silent = false;  // injected: no completion
    };
    ssize_t send(const Message& message);
    ssize_t post(const iovec* pieces, std::size_t count, void* context, std::uint64_t flags);
    int cancel(void* context);
    // Of calls that take none.
    std::uint64_t send_flags() const { return sent_.default_flags; }
    std::uint64_t receive_flags() const { return received_.default_flags; }

    // For memberships.
    std::mutex& mutex() const { return domain_.mutex(); }
    const Domain& domain() const { return domain_; }
    int family() const { return address_.family(); }
    bool enabled() const { return socket_.valid(); }
    EventQueue* events() const { return events_; }
    std::uint64_t directions() const { return directions_; }  // FI_SEND, FI_RECV
    Receiver& receiver() { return receiver_; }
    // Null: messages are mere datagrams.
    Reliable* reliable() { return reliable_.get(); }
    // Null: groups go over UDP.
    VerbsGroups* verbs() { return verbs_.get(); }
    // With the lock held. The socket of a group that has been joined already:
    std::shared_ptr<FileDescriptor> socket_of(const SocketAddress& group) const;
    // Gives it its address.
    void add(Membership& membership);
    void remove(const Membership& membership);

    // For those it completes to, with the lock held.
    void receive();
    // Before they sleep: they look at the sockets from now on, or no longer.
    void watch();

  private:
    // The queue and the counter that one direction completes to.
    struct Channel {
        CompletionQueue* queue = nullptr;
        Counter* counter = nullptr;
        bool selective = false;           // completions of success only when asked for
        std::uint64_t default_flags = 0;  // of calls that take none

        bool full() const { return queue != nullptr && queue->room() == 0; }
        // Whether success is told by the queue.
        bool tells(std::uint64_t flags) const {
            return queue != nullptr && (!selective || (flags & FI_COMPLETION) != 0);
        }
        void complete(std::uint64_t flags, const Completion& completion);
    };
    int bind_completions(Handle& other, std::uint64_t flags);
    Result<FileDescriptor> open_socket();
    std::array<WaitObject*, 4> wait_objects();
    void wake();
    bool is_own(const SocketAddress& source) const;
    // Null: there is no such destination, which `error` explains.
    const SocketAddress* destination(const Message& message, int& error) const;
    void complete_receive(const PostedReceive& posted, const Datagram& datagram);

    bool begin_receive(PostedReceive& posted) override;
    bool end_receive(const PostedReceive& posted, const Datagram& message) override;
    void give_back(const PostedReceive& posted) override;
    void group_lost(const SocketAddress& group, const SocketAddress& member, feed::Loss how) override;

    Domain& domain_;
    const InfoOwner info_;
    SocketAddress address_;  // where it is bound; as the application says until it is enabled
    const std::uint64_t directions_;
    const bool tells_source_;
    std::size_t max_message_;
    EventQueue* events_ = nullptr;
    AddressVector* addresses_ = nullptr;
    Channel sent_, received_;
    FileDescriptor socket_;
    Receiver receiver_;
    std::unique_ptr<Reliable> reliable_;
    std::unique_ptr<VerbsGroups> verbs_;
    bool watched_ = false;
    fi_addr_t next_group_;
    std::unordered_map<fi_addr_t, Membership*> memberships_;
};

// Its tables (datagram/calls.cc).
void set_calls(Endpoint& endpoint);

}  // namespace mcastcoll::ofi::datagram
