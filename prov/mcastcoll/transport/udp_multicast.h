// The two sides of UDP multicast.
//
// A UdpSender is one socket for all groups, bound to the interface's address and an
// ephemeral port that no other process has. Receivers know a sender by it, and a sender its own copies.
//
// Offload: most of what a datagram costs is its way through the stack, once per receiver. Datagrams of one
// size that follow each other (the last may be shorter) travel that way as one: the kernel gets them as one
// message with UDP_SEGMENT, cuts them only where it must, and hands them uncut to a receiver that has set
// UDP_GRO. On the wire, and to a receiver without it, they are the same datagrams. But they are lost together
// where a queue overflows before they are cut.
//
// A UdpReceiver is one socket, bound to a port that all processes of the host share (each gets its own copy
// of a multicast), with any number of memberships up to the kernel's limit. It hears only what it has joined,
// only on its own interface, besides what somebody sends to the port directly.
//
// A ReceiveBatch is the memory to receive into; one serves all sockets. Receiving uses recvmmsg: one call
// takes several that wait, and a call that gets fewer than it has room for has also learnt that the socket is
// empty. One datagram of 64 bytes on a veth, median in us on a slow machine:
//   - one datagram, known to be the last: recvmmsg 1.19; recvmsg until it finds nothing 1.33 (first call
//   0.91)
//   - an empty socket: recvmmsg 0.45, recvmsg 0.42
//   - each of 32 that wait: 0.49
#pragma once

#include <sys/socket.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "transport/udp_socket.h"

namespace mcastcoll {

class UdpSender {
  public:
    // loop: whether this host gets what is sent. The loopback interface loops all the same.
    Result<void> open(const UdpMulticastOptions& options, bool loop);
    bool is_open() const { return socket_.valid(); }

    Sent send(std::span<const Datagram> datagrams, const SocketAddress& group, MulticastCounters& counters);

    int descriptor() const { return socket_.get(); }
    const SocketAddress& local_address() const { return local_; }
    // Whether the kernel takes runs. It is no longer tried once the kernel has refused one.
    bool sends_runs() const { return sends_runs_; }

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;
    // Datagrams gathered for one system call: two of the largest runs of full Ethernet datagrams, and a bit.
    static constexpr std::size_t kGather = 96;
    struct SegmentControl {
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
    };

    void prepare_batch();
    std::size_t run_length(std::span<const Datagram> datagrams) const;
    void compose(std::size_t message, std::span<const Datagram> run, std::size_t first_piece);
    std::size_t gather(std::span<const Datagram> datagrams);
    int send_batch(std::size_t count);
    std::size_t count_sent(std::size_t messages, MulticastCounters& counters);
    bool give_up_runs(int code);
    static int note_failure(int code, MulticastCounters& counters);

    FileDescriptor socket_;
    unsigned interface_index_ = 0;
    SocketAddress local_;
    std::size_t max_payload_ = 0;
    bool sends_runs_ = false;

    // Preallocated once: the kernel's view of a batch.
    SocketAddress to_;
    std::vector<mmsghdr> messages_;
    std::vector<iovec> pieces_;
    std::vector<SegmentControl> controls_;
    // How many datagrams each message is made of.
    std::vector<std::size_t> runs_;
};

class UdpReceiver {
  public:
    Result<void> open(const UdpMulticastOptions& options, std::uint16_t port);

    // ENOBUFS or ENOMEM: the kernel allows this socket no more memberships.
    Result<void> join(const SocketAddress& group);
    void leave(const SocketAddress& group);

    int descriptor() const { return socket_.get(); }
    std::uint16_t port() const { return port_; }
    std::size_t memberships() const { return memberships_; }
    std::size_t buffer_bytes() const { return buffer_bytes_; }
    bool takes_runs() const { return takes_runs_; }
    std::uint64_t drops() const;

  private:
    FileDescriptor socket_;
    unsigned interface_index_ = 0;
    std::uint16_t port_ = 0;
    std::size_t memberships_ = 0, buffer_bytes_ = 0;
    bool takes_runs_ = false;
};

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
    struct RunControl {
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
    };
    std::size_t receive(int descriptor, MulticastCounters& counters);
    void deliver_message(std::size_t slot, DeliverDatagram deliver, MulticastCounters& counters);

    const std::size_t max_payload_;
    const bool runs_;
    const std::size_t at_once_;  // messages by one call
    // Not cleared: what is never received into stays unmapped.
    std::unique_ptr<std::byte[]> buffers_;
    std::vector<SocketAddress> sources_;
    std::vector<mmsghdr> messages_;
    std::vector<iovec> pieces_;
    std::vector<RunControl> controls_;
};

}  // namespace mcastcoll
