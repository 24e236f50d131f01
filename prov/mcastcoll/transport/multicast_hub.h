// All UDP multicast of one endpoint: a few sockets that all its groups share, as README.md says.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "transport/udp_socket.h"

namespace mcastcoll {

// One socket for all groups, bound to the interface's address and an ephemeral port that no other process
// has. Receivers know a sender by it, and a sender its own copies.
//
// Offload: most of what a datagram costs is its way through the stack, once per receiver. Datagrams of one
// size that follow each other (the last may be shorter) travel that way as one: the kernel gets them as one
// message with UDP_SEGMENT, cuts them only where it must, and hands them uncut to a receiver that has set
// UDP_GRO. On the wire, and to a receiver without it, they are the same datagrams. But they are lost together
// where a queue overflows before they are cut.
class UdpSender {
  public:
    // loop: whether this host gets what is sent. The loopback interface loops all the same.
    Result<void> open(const UdpMulticastOptions& options, bool loop);
    bool is_open() const { return socket_.valid(); }
    int descriptor() const { return socket_.get(); }

    Sent send(std::span<const Datagram> datagrams, const SocketAddress& group, MulticastCounters& counters);

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;
    // Datagrams gathered for one system call: two of the largest runs of full Ethernet datagrams, and a bit.
    static constexpr std::size_t kGather = 96;

    std::size_t run_length(std::span<const Datagram> datagrams) const;
    void compose(std::size_t message, std::span<const Datagram> run, std::size_t first_piece);
    std::size_t gather(std::span<const Datagram> datagrams);
    int send_batch(std::size_t count);
    std::size_t count_sent(std::size_t messages, MulticastCounters& counters);
    bool give_up_runs(int code);

    FileDescriptor socket_;
    unsigned interface_index_ = 0;
    std::size_t max_payload_ = 0;
    // Whether the kernel takes runs. It is no longer tried once the kernel has refused one.
    bool sends_runs_ = false;

    // The kernel's view of a batch.
    SocketAddress to_;
    std::array<mmsghdr, kBatch> messages_{};
    std::array<iovec, 2 * kGather> pieces_{};
    std::array<UdpControl<std::uint16_t>, kBatch> controls_{};
    // How many datagrams each message is made of.
    std::array<std::size_t, kBatch> runs_{};
};

// One socket, bound to a port that all processes of the host share (each gets its own copy of a multicast),
// with any number of memberships up to the kernel's limit. It hears only what it has joined, only on its own
// interface, besides what somebody sends to the port directly.
struct UdpReceiver {
    Result<void> open(const UdpMulticastOptions& options, std::uint16_t at);
    // ENOBUFS or ENOMEM: the kernel allows this socket no more memberships.
    Result<void> join(const SocketAddress& group);
    void leave(const SocketAddress& group);
    std::uint64_t drops() const;

    FileDescriptor socket;
    unsigned interface_index = 0;
    std::uint16_t port = 0;
    std::size_t memberships = 0, buffer_bytes = 0;
    bool takes_runs = false;
};

// The memory to receive into; one serves all sockets. recvmmsg takes several that wait with one call, and a
// call that gets fewer than it has room for has also learnt that the socket is empty: on an idle socket one
// datagram costs less so than by recvmsg until that finds nothing (1.19 instead of 1.33 us, and one of 32
// that wait 0.49 us).
class ReceiveBatch {
  public:
    ReceiveBatch(std::size_t max_payload, bool runs);
    ReceiveBatch(const ReceiveBatch&) = delete;
    ReceiveBatch& operator=(const ReceiveBatch&) = delete;

    // Takes at most kBatch messages; returns how many.
    std::size_t take(int descriptor, DeliverDatagram deliver, MulticastCounters& counters);

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;
    // A run has up to 64 KiB. Two fit into a processor's own cache, where they still are when they are
    // checked and copied; broadcasts of 512 KiB took 7 % longer with all runs in one call.
    static constexpr std::size_t kRunsAtOnce = 2;
    std::size_t receive(int descriptor, MulticastCounters& counters);
    void deliver_message(std::size_t slot, DeliverDatagram deliver, MulticastCounters& counters);

    const std::size_t max_payload_;
    const bool runs_;
    const std::size_t at_once_;  // messages by one call
    // Not cleared: what is never received into stays unmapped.
    std::unique_ptr<std::byte[]> buffers_;
    std::array<SocketAddress, kBatch> sources_;
    std::array<mmsghdr, kBatch> messages_{};
    std::array<iovec, kBatch> pieces_{};
    std::array<UdpControl<int>, kBatch> controls_{};
};

class MulticastHub final : public JoinableTransport {
  public:
    static Result<std::unique_ptr<MulticastHub>> open(const UdpMulticastOptions& options);

    Result<Membership> join(const SocketAddress& group) override;
    bool has_joined(const SocketAddress& group) const override { return shares_.count(group) > 0; }
    bool has_room() const override;
    std::size_t receiving_sockets() const { return receivers_.size(); }
    std::size_t memberships_per_socket() const { return per_socket_; }

    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override;
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    int descriptor() const override { return poll_set_.get(); }
    std::size_t max_payload() const override { return max_payload_; }
    MulticastCounters counters() const override;

    // The socket that datagrams with this `loop` are sent from. Opens it when it is not there yet.
    Result<UdpSender*> sender(bool loop);
    // What the kernel granted, in its own accounting (it doubles what is asked for, to cover its overhead);
    // of the latest socket.
    std::size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }

  private:
    // Sockets of one port that are opened before memberships share one.
    static constexpr std::size_t kSpread = 4;
    // More than so many ready sockets wait for the next receive().
    static constexpr std::size_t kReady = 16;
    struct Share {
        std::size_t users = 0;
        UdpReceiver* receiver = nullptr;
    };

    explicit MulticastHub(const UdpMulticastOptions& options);
    Result<UdpReceiver*> join_somewhere(const SocketAddress& group);
    Result<UdpReceiver*> open_receiver(const SocketAddress& group);
    UdpReceiver* roomiest(std::uint16_t port, std::size_t& sockets);
    void leave(const SocketAddress& group) override;

    const UdpMulticastOptions options_;
    const std::size_t max_payload_;
    std::size_t per_socket_;
    std::size_t receive_buffer_bytes_ = 0;
    FileDescriptor poll_set_;
    const pid_t opener_ = ::getpid();
    UdpSender senders_[2];  // [1] loops
    std::vector<std::unique_ptr<UdpReceiver>> receivers_;
    std::unordered_map<SocketAddress, Share> shares_;
    std::optional<ReceiveBatch> batch_;
    MulticastCounters counters_;
};

}  // namespace mcastcoll
