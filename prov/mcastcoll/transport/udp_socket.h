// What the sending and the receiving side of UDP multicast have in common: the options, their checks, and a
// few socket calls that report errors in words.
#pragma once

#include <sys/socket.h>

#include <array>
#include <initializer_list>

#include "base/file_descriptor.h"
#include "transport/multicast_transport.h"

// Kernel interfaces that are younger than some C libraries.
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace mcastcoll {

struct UdpMulticastOptions : MulticastOptions {
    // 0 leaves the system's default. More than the system's limit is granted to privileged processes only.
    std::size_t receive_buffer_bytes = 0;
    std::size_t send_buffer_bytes = 0;
    // Lets runs of datagrams travel as one where the kernel can. Off: each is sent and received, and can be
    // lost, alone.
    bool offload = true;
    // Memberships of one socket; 0 is what the kernel says it allows.
    std::size_t memberships_per_socket = 0;
};

Result<void> check(const MulticastOptions& options);
// Bytes that fit in one unfragmented datagram; 0 when the MTU leaves no room.
std::size_t payload_for(const MulticastOptions& options);

Result<void> set_option(int descriptor, int level, int name, int value, const char* what);
struct SocketOption {
    int level, name, value;
    const char* what;
};
// In this order, up to the first that the kernel refuses.
Result<void> set_options(int descriptor, std::initializer_list<SocketOption> options);
// Of IPv4: multicasts leave by the interface, with this source.
Result<void> multicast_from(int descriptor, const Interface& interface, const SocketAddress& source);
// Only what this very socket joins, not what any process of the host does.
Result<void> hear_own_groups(int descriptor, int family);
// How: MCAST_JOIN_GROUP or MCAST_LEAVE_GROUP. 0 or an errno; ENOBUFS or ENOMEM: the kernel allows this socket
// no more. Allocates nothing, since destructors leave.
int change_membership(int descriptor, int how, const SocketAddress& group, unsigned interface_index);
// That errno says that there is no room to send now.
bool is_full(int error);
// The kernel's share of a receive buffer for a datagram, roughly: the data rounded up, and its own
// bookkeeping.
constexpr std::size_t datagram_cost(std::size_t bytes) {
    return (bytes + 2047) / 2048 * 2048 + 768;
}
// Room for a note to the kernel, or from it, about a message: UDP_SEGMENT has 16 bits, UDP_GRO an int.
template <typename Note>
struct UdpControl {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(Note))> bytes;
};
// The size of the datagrams that a received message is a run of (UDP_GRO), or `otherwise`.
std::size_t run_unit(msghdr& message, std::size_t otherwise);
// Not blocking, closed on exec.
Result<FileDescriptor> open_datagram_socket(int family);
// Asks for a buffer beyond the system's limit first, which takes privilege, then within it; returns what was
// granted. `forced` and `limited` are SO_RCVBUFFORCE and SO_RCVBUF, or those for sending.
Result<std::size_t> size_buffer(int descriptor, std::size_t bytes, int forced, int limited);

}  // namespace mcastcoll
