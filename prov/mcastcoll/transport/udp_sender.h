// The sending side of UDP multicast: one socket for all groups, bound to the interface's address and an
// ephemeral port that no other process has. Receivers know a sender by it, and a sender its own copies.
//
// Offload: most of what a datagram costs is its way through the stack, once per receiver. Datagrams of one
// size that follow each other (the last may be shorter) travel that way as one: the kernel gets them as one
// message with UDP_SEGMENT, cuts them only where it must, and hands them uncut to a receiver that has set
// UDP_GRO. On the wire, and to a receiver without it, they are the same datagrams. But they are lost together
// where a queue overflows before they are cut.
#pragma once

#include <sys/socket.h>

#include <array>
#include <span>
#include <vector>

#include "transport/multicast_transport.h"
#include "transport/udp_socket.h"

namespace mcastcoll {

class UdpSender {
  public:
    // loop: whether this host gets what is sent. The loopback interface loops all the same.
    Result<void> open(const UdpMulticastOptions& options, bool loop);
    bool is_open() const { return socket_.valid(); }

    // Sends in order and returns how many were accepted.
    std::size_t send(std::span<const Datagram> datagrams, const SocketAddress& group,
                     MulticastCounters& counters);
    // The errno of the last hard send error, which it forgets; 0 when there was none.
    int take_error();

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
    void note_failure(int code, MulticastCounters& counters);

    FileDescriptor socket_;
    unsigned interface_index_ = 0;
    SocketAddress local_;
    std::size_t max_payload_ = 0;
    int error_ = 0;
    bool sends_runs_ = false;

    // Preallocated once: the kernel's view of a batch.
    SocketAddress to_;
    std::vector<mmsghdr> messages_;
    std::vector<iovec> pieces_;
    std::vector<SegmentControl> controls_;
    // How many datagrams each message is made of.
    std::vector<std::size_t> runs_;
};

}  // namespace mcastcoll
