// A datagram endpoint with multicast over UDP. What is sent is on its way when the call returns, so its
// completion is there at once; what comes is taken from the sockets whenever somebody reads the queue or the
// counter that it completes to. A message is the payload of one datagram, with nothing of ours around it.
#pragma once

#include <rdma/fi_endpoint.h>

#include <unordered_map>

#include "datagram/address_vector.h"
#include "datagram/membership.h"
#include "datagram/queues.h"
#include "provider/owners.h"
#include "transport/verbs_options.h"

namespace mcastcoll::ofi::datagram {

class Endpoint : public Object<Endpoint, fid_ep, FI_CLASS_EP, Domain> {
  public:
    static int open(Domain& domain, const fi_info* info, fid_ep** endpoint, void* context);

    // The address is as the application says.
    Endpoint(Domain& domain, InfoOwner info, const SocketAddress& address, void* context);
    ~Endpoint();

    // For the tables of calls: 0 or -FI_E*.
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
    // Of calls that take none.
    std::uint64_t send_flags() const { return sent_.default_flags; }
    std::uint64_t receive_flags() const { return received_.default_flags; }

    // For memberships.
    std::mutex& mutex() const { return parent().mutex; }
    int family() const { return address_.family(); }
    bool enabled() const { return socket_.valid(); }
    EventQueue* events() const { return events_.get(); }
    std::uint64_t directions() const { return directions_; }  // FI_SEND, FI_RECV
    Receiver& receiver() { return receiver_; }
    // Null: messages are mere datagrams.
    Reliable* reliable() { return reliable_.get(); }
    // Null: groups go over UDP.
    VerbsTransport* verbs() { return verbs_.get(); }
    fi_addr_t number_of(const SocketAddress& peer) const { return addresses_->find(peer); }
    // With the lock held. The socket of a group that has been joined already:
    std::shared_ptr<FileDescriptor> socket_of(const SocketAddress& group) const;
    // Gives it its address.
    void add(Membership& membership);
    void remove(const Membership& membership);

    // For those it completes to, with the lock held.
    void receive();
    // Before they sleep: they look at the sockets from now on, or no longer.
    void watch();

    // For reliable messages. Takes a posted buffer; false: there is none, or no room for its completion.
    bool begin_receive(PostedReceive& posted);
    // False: no room for the completion now.
    bool end_receive(const PostedReceive& posted, const Datagram& message);
    // It will not be filled after all.
    void give_back(const PostedReceive& posted);

  private:
    // The queue and the counter that one direction completes to.
    struct Channel {
        std::shared_ptr<CompletionQueue> queue;
        std::shared_ptr<Counter> counter;
        bool selective = false;           // completions of success only when asked for
        std::uint64_t default_flags = 0;  // of calls that take none

        bool full() const { return queue && queue->room() == 0; }
        // Whether success is told by the queue.
        bool tells(std::uint64_t flags) const {
            return queue && (!selective || (flags & FI_COMPLETION) != 0);
        }
        void complete(std::uint64_t flags, const Completion& completion);
        void cancel(const PostedReceive& posted);
    };
    template <typename Target>
    int complete_to(Target& target, std::shared_ptr<Target> Channel::*place, std::uint64_t flags);
    int enable();
    Result<FileDescriptor> open_socket() const;
    int operation_flags(std::uint64_t* flags, bool set);
    void wake();
    bool is_own(const SocketAddress& source) const;
    // 0, or -FI_E*.
    int send_to_peer(fi_addr_t to, Pieces pieces) const;
    int send_to_group(fi_addr_t to, Pieces pieces, std::size_t size);
    void complete_receive(const PostedReceive& posted, const Datagram& datagram);

    const InfoOwner info_;
    SocketAddress address_;  // where it is bound; as the application says until it is enabled
    const std::uint64_t directions_;
    const bool tells_source_;
    std::size_t max_message_;
    std::shared_ptr<EventQueue> events_;
    std::shared_ptr<AddressVector> addresses_;
    Channel sent_, received_;
    FileDescriptor socket_;
    Receiver receiver_;
    std::unique_ptr<Reliable> reliable_;
    std::unique_ptr<VerbsTransport> verbs_;
    std::vector<std::byte> gathered_;
    std::vector<Waiter*> waiters_;  // those that it completes to and that its sockets wake
    bool watched_ = false;
    // Groups' addresses are told from those of an address vector by this.
    fi_addr_t next_group_ = fi_addr_t{1} << 62;
    std::unordered_map<fi_addr_t, Membership*> memberships_;
};

}  // namespace mcastcoll::ofi::datagram
