// One sending socket for all groups, bound to the interface's address and an ephemeral port of its own. The
// port identifies the sender to receivers, and lets the sender recognise its own copies.
//
// Offload: most of the cost of a datagram is the path through the network stack, once per receiver.
// Consecutive datagrams of equal size (the last may be shorter) therefore travel as one run: the kernel takes
// them as one message with UDP_SEGMENT, splits the message only where necessary, and delivers it unsplit to a
// receiver with UDP_GRO. On the wire, and to a receiver without UDP_GRO, they are separate datagrams.
// However, a run is lost as a whole if a queue overflows before the split.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>

#include "transport/multicast_transport.h"
#include "transport/udp_socket.h"

namespace mcastcoll::transport {

class UdpSender {
  public:
    // loop: whether this host receives the datagrams too. The loopback interface loops in any case.
    Result<void> open(const UdpMulticastOptions& options, bool loop);
    bool is_open() const { return socket_.valid(); }
    int descriptor() const { return socket_.get(); }

    Sent send(std::span<const Datagram> datagrams, const SocketAddress& group, MulticastCounters& counters);

  private:
    static constexpr std::size_t kBatch = MulticastTransport::kBatch;
    // Maximum number of datagrams in one system call: a little more than two runs of the maximum length, 44
    // full Ethernet datagrams each.
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

}  // namespace mcastcoll::transport
