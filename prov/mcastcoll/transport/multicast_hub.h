// All UDP multicast of one endpoint: a few sockets shared by its groups (see README.md).
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

// One sending socket for all groups, bound to the interface's address and an ephemeral port of its own. The
// port identifies the sender to receivers, and lets the sender recognise its own copies.
//
// Offload: most of the cost of a datagram is the path through the network stack, once per receiver.
// Consecutive datagrams of equal size (the last may be shorter) therefore travel as one run: the kernel takes
// them as one message with UDP_SEGMENT, splits the message only where necessary, and delivers it unsplit to a
// receiver with UDP_GRO. On the wire, and to a receiver without UDP_GRO, they are separate datagrams.
// However, a run is lost as a whole if a queue overflows before the split.
class UdpSender {
  public:
    // loop: whether this host receives the datagrams too. The loopback interface loops in any case.
    Result<void> open(const UdpMulticastOptions& options, bool loop);
    bool is_open() const { return socket_.valid(); }
    int descriptor() const { return socket_.get(); }

    Sent send(std::span<const Datagram> datagrams, const SocketAddress& group, MulticastCounters& counters);

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;
    // Datagrams gathered for one system call: a little more than two runs of the maximum length in full
    // Ethernet datagrams.
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
    // Whether the kernel accepts runs. Cleared for good when the kernel refuses one.
    bool sends_runs_ = false;

    // Arguments of the system calls for a batch.
    SocketAddress to_;
    std::array<mmsghdr, kBatch> messages_{};
    std::array<iovec, 2 * kGather> pieces_{};
    std::array<UdpControl<std::uint16_t>, kBatch> controls_{};
    // Number of datagrams in each message.
    std::array<std::size_t, kBatch> runs_{};
};

// One receiving socket, bound to a port shared by all processes of the host (each gets its own copy of a
// multicast), with memberships up to the kernel's limit. Receives only groups joined by this socket on its
// own interface, and unicasts to the port.
struct UdpReceiver {
    Result<void> open(const UdpMulticastOptions& options, std::uint16_t at);
    // ENOBUFS or ENOMEM: the kernel allows no further membership on this socket.
    Result<void> join(const SocketAddress& group);
    void leave(const SocketAddress& group);
    std::uint64_t drops() const;

    FileDescriptor socket;
    unsigned interface_index = 0;
    std::uint16_t port = 0;
    std::size_t memberships = 0, buffer_bytes = 0;
    bool takes_runs = false;
};

// The receive buffers, shared by all sockets. recvmmsg takes several waiting datagrams in one call, and a
// result shorter than the array also shows that the socket is empty. Measured on an otherwise idle socket:
// one datagram costs 1.19 us, with recvmsg until the socket is empty 1.33 us; each of 32 waiting datagrams
// costs 0.49 us.
class ReceiveBatch {
  public:
    ReceiveBatch(std::size_t max_payload, bool runs);
    ReceiveBatch(const ReceiveBatch&) = delete;
    ReceiveBatch& operator=(const ReceiveBatch&) = delete;

    // Takes at most kBatch messages and returns their number.
    std::size_t take(int descriptor, DeliverDatagram deliver, MulticastCounters& counters);

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;
    // A run has up to 64 KiB. Two runs fit into a core's private cache and are still there when they are
    // checked and copied. With all runs in one call, broadcasts of 512 KiB took 7 % longer.
    static constexpr std::size_t kRunsAtOnce = 2;
    std::size_t receive(int descriptor, MulticastCounters& counters);
    void deliver_message(std::size_t slot, DeliverDatagram deliver, MulticastCounters& counters);

    const std::size_t max_payload_;
    const bool runs_;
    const std::size_t at_once_;  // messages per system call
    // Not cleared: pages without received data stay unmapped.
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

    // The socket for datagrams with this `loop`, opened at the first use.
    Result<UdpSender*> sender(bool loop);
    // The size granted by the kernel to the latest socket, in the kernel's own accounting (twice the
    // requested size, to cover overhead).
    std::size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }

  private:
    // Number of sockets for a port before memberships share a socket.
    static constexpr std::size_t kSpread = 4;
    // Ready sockets per receive(); further ones wait for the next call.
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
    UdpSender senders_[2];  // [1]: with loop
    std::vector<std::unique_ptr<UdpReceiver>> receivers_;
    std::unordered_map<SocketAddress, Share> shares_;
    std::optional<ReceiveBatch> batch_;
    MulticastCounters counters_;
};

}  // namespace mcastcoll
