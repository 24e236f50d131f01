// UDP multicast, IPv4 and IPv6.
//
// Two sockets. The receiving one is bound to group:port, shared by all processes of the host (each gets its
// own copy), and hears only its own group on its own interface. The sending one is bound to the interface's
// address and an ephemeral port that no other process has: receivers know a sender by it, and a sender its
// own copies. It is connected to the group, so that the kernel looks the route up once and nobody can put
// datagrams into a socket that we never read.
//
// Receiving uses recvmmsg: one call takes all that waits, one datagram as well as a full batch, and a call
// that gets fewer than a batch has also learnt that the socket is empty. One datagram of 64 bytes on a veth,
// median in us on a slow machine:
//   - one datagram, known to be the last: recvmmsg 1.19; recvmsg until it finds nothing 1.33 (first call
//   0.91)
//   - an empty socket: recvmmsg 0.45, recvmsg 0.42
//   - each of 32 that wait: 0.49
//   - sending one: sendmmsg 4.11, sendmsg 4.03 (hence the latter for one alone); each of 32: 3.26
//
// Offload: most of what a datagram costs is its way through the stack, once per receiver. Datagrams of one
// size that follow each other (the last may be shorter) travel that way as one: the kernel gets them as one
// message with UDP_SEGMENT, cuts them only where it must, and hands them uncut to a receiver that has set
// UDP_GRO. On the wire, and to a receiver without it, they are the same datagrams. But they are lost together
// where a queue overflows before they are cut.
#pragma once

#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "transport/file_descriptor.h"
#include "transport/interface.h"
#include "transport/multicast_transport.h"

namespace mcastcoll {

struct UdpMulticastOptions {
    Interface interface;
    // 4 or 6.
    int family = 4;
    // Group and port, both required.
    SocketAddress group;
    int ttl = 1;
    // 0 leaves the system's default. More than the system's limit is granted to privileged processes only.
    std::size_t receive_buffer_bytes = 0;
    std::size_t send_buffer_bytes = 0;
    // Upper bound of max_payload(); 0 is none. The MTU of a loopback makes for 2 MiB of receive buffers.
    std::size_t payload_limit = 0;
    // Lets runs of datagrams travel as one where the kernel can. Off: each is sent and received, and can be
    // lost, alone.
    bool offload = true;
    // Whether this host gets what it sends. False saves the copies where no other process of the host is a
    // member. The loopback interface loops all the same.
    bool loop = true;
};

class UdpMulticast final : public MulticastTransport {
  public:
    static Result<std::unique_ptr<UdpMulticast>> open(const UdpMulticastOptions& options);

    std::size_t send(std::span<const Datagram> datagrams) override;
    int take_send_error() override;
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    Nanoseconds next_deadline() const override { return kNever; }
    int descriptor() const override { return receiver_.get(); }
    const SocketAddress& local_address() const override { return local_; }
    const SocketAddress& group_address() const override { return group_; }
    std::size_t max_payload() const override { return max_payload_; }
    MulticastCounters counters() const override;

    // Polls writable when a send() that was cut short can be tried again.
    int send_descriptor() const { return sender_.get(); }
    // What the kernel granted, in its own accounting (it doubles what is asked for, to cover its overhead).
    std::size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }
    std::size_t send_buffer_bytes() const { return send_buffer_bytes_; }
    // Whether the kernel takes and hands over runs. Sending stops doing so when the kernel refuses one.
    bool sends_runs() const { return sends_runs_; }
    bool receives_runs() const { return receives_runs_; }

  private:
    // Datagrams gathered for one system call: two of the largest runs of full Ethernet datagrams, and a bit.
    static constexpr std::size_t kGather = 96;
    struct SegmentControl {
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
    };
    struct RunControl {
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
    };

    UdpMulticast() = default;
    Result<void> open_receiver(const UdpMulticastOptions& options);
    Result<void> open_sender(const UdpMulticastOptions& options);
    void prepare_batches();
    std::size_t run_length(std::span<const Datagram> datagrams) const;
    void compose(std::size_t message, std::span<const Datagram> run, std::size_t first_piece);
    std::size_t gather(std::span<const Datagram> datagrams);
    int send_batch(std::size_t count);
    std::size_t count_sent(std::size_t messages);
    bool give_up_runs(int code);
    void note_send_failure(int code);
    void deliver_message(std::size_t slot, DeliverDatagram deliver);

    FileDescriptor receiver_;
    FileDescriptor sender_;
    SocketAddress group_;
    SocketAddress local_;
    std::size_t max_payload_ = 0;
    std::size_t receive_buffer_bytes_ = 0;
    std::size_t send_buffer_bytes_ = 0;
    int send_error_ = 0;
    bool sends_runs_ = false;
    bool receives_runs_ = false;
    MulticastCounters counters_;

    // Preallocated once: the kernel's view of a batch, pointing into the buffers.
    // Not cleared: what is never received into stays unmapped.
    std::unique_ptr<std::byte[]> buffers_;
    std::size_t buffer_stride_ = 0;
    std::vector<SocketAddress> sources_;
    std::vector<mmsghdr> receive_messages_;
    std::vector<iovec> receive_pieces_;
    std::vector<RunControl> receive_controls_;
    std::vector<mmsghdr> send_messages_;
    std::vector<iovec> send_pieces_;
    std::vector<SegmentControl> send_controls_;
    // How many datagrams each message to send is made of.
    std::vector<std::size_t> send_runs_;
};

// How many random bytes random_group_address() uses.
inline constexpr std::size_t kGroupRandomBytes = 16;

// A group address and port out of `random`: IPv4 from the administratively scoped 239/8 with 24 random bits,
// keeping off the blocks that are assigned or that share their Ethernet address with the never-filtered
// 224.0.0/24; IPv6 from ff15::/16 (transient, site scope) with 112 random bits. The port, 20000 to 32767,
// stays below the ephemeral range.
SocketAddress random_group_address(int family, std::span<const std::byte, kGroupRandomBytes> random);

}  // namespace mcastcoll
