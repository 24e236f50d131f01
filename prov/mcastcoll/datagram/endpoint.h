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
#include "datagram/verbs_lane.h"
#include "provider/info.h"

namespace mcastcoll::ofi::datagram {

class Endpoint : public fid_ep, private Reliable::Owner {
  public:
    static int open(Domain& domain, const fi_info* info, fid_ep** endpoint, void* context);

    // For memberships.
    std::mutex& mutex() const { return domain_.mutex(); }
    const Interface& interface() const { return domain_.interface(); }
    const Settings& settings() const { return domain_.settings(); }
    int family() const { return address_.family(); }
    bool enabled() const { return socket_.valid(); }
    EventQueue* events() const { return events_; }
    std::uint64_t directions() const { return directions_; }  // FI_SEND, FI_RECV
    Receiver& receiver() { return receiver_; }
    // Null: messages are mere datagrams.
    Reliable* reliable() { return reliable_.get(); }
    // Null: groups go over UDP.
    VerbsLane* verbs() { return verbs_.get(); }
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
    struct Message {
        const iovec* pieces;
        std::size_t count;
        fi_addr_t to;
        void* context;
        std::uint64_t flags;
        bool silent = false;  // injected: no completion
    };

    Endpoint(Domain& domain, InfoOwner info, const SocketAddress& address);
    virtual ~Endpoint();
    static Endpoint& of(fid_ep* endpoint) { return static_cast<Endpoint&>(*endpoint); }
    static Endpoint& of(Handle* object) { return object_of<Endpoint, fid_ep>(object); }

    static int close(Handle* object) noexcept;
    static int bind(Handle* object, Handle* other, std::uint64_t flags) noexcept;
    static int control(Handle* object, int command, void* argument) noexcept;
    static ssize_t cancel(Handle* object, void* context) noexcept;
    static int getopt(Handle* object, int level, int name, void* value, std::size_t* length) noexcept;
    static int setopt(Handle* object, int level, int name, const void* value, std::size_t length) noexcept;
    static int setname(Handle* object, void* address, std::size_t length) noexcept;
    static int getname(Handle* object, void* address, std::size_t* length) noexcept;
    static int join(fid_ep* endpoint, const void* address, std::uint64_t flags, fid_mc** mc,
                    void* context) noexcept;
    static fi_ops_msg& message_operations();

    int bind(Handle& other, std::uint64_t flags);
    int bind_completions(Handle& other, std::uint64_t flags);
    int enable();
    Result<FileDescriptor> open_socket();
    int operation_flags(std::uint64_t* flags, bool set);
    std::array<WaitNest*, 4> nests();
    void wake();
    bool is_own(const SocketAddress& source) const;
    bool take(const PostedReceive& posted, const Datagram& datagram);
    ssize_t post(const iovec* pieces, std::size_t count, void* context, std::uint64_t flags);
    ssize_t send(const Message& message);
    // Null: there is no such destination, which `error` explains.
    const SocketAddress* destination(const Message& message, int& error) const;
    bool is_reliable() const { return info_->ep_attr->type == FI_EP_RDM; }
    void complete_receive(const PostedReceive& posted, const Datagram& datagram);

    bool begin_receive(PostedReceive& posted) override;
    bool end_receive(const PostedReceive& posted, const Datagram& message) override;
    void give_back(const PostedReceive& posted) override;
    void group_lost(const SocketAddress& group, const SocketAddress& member, feed::Loss how) override;

    // fi_ops_msg
    static ssize_t recv(fid_ep* ep, void* buffer, std::size_t length, void* descriptor, fi_addr_t from,
                        void* context) noexcept;
    static ssize_t recvv(fid_ep* ep, const iovec* pieces, void** descriptors, std::size_t count,
                         fi_addr_t from, void* context) noexcept;
    static ssize_t recvmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) noexcept;
    static ssize_t send(fid_ep* ep, const void* buffer, std::size_t length, void* descriptor, fi_addr_t to,
                        void* context) noexcept;
    static ssize_t sendv(fid_ep* ep, const iovec* pieces, void** descriptors, std::size_t count, fi_addr_t to,
                         void* context) noexcept;
    static ssize_t sendmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) noexcept;
    static ssize_t inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) noexcept;

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
    std::unique_ptr<VerbsLane> verbs_;
    bool watched_ = false;
    fi_addr_t next_group_;
    std::unordered_map<fi_addr_t, Membership*> memberships_;
};

}  // namespace mcastcoll::ofi::datagram
