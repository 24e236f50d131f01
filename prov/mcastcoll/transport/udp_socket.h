// The common part of sending and receiving UDP multicasts: options, checks, and socket calls with error
// texts.
#pragma once

#include <sys/socket.h>

#include <array>
#include <initializer_list>

#include "base/file_descriptor.h"
#include "transport/multicast_options.h"

// Kernel interfaces newer than some C libraries.
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace mcastcoll::transport {

struct UdpMulticastOptions : MulticastOptions {
    // Buffer sizes. 0: the system's default. Only privileged processes get more than the system's limit.
    std::size_t receive_buffer_bytes = 0;
    std::size_t send_buffer_bytes = 0;
    // Lets runs of datagrams travel as one message if the kernel supports it. Off: each datagram is sent,
    // received and possibly lost separately.
    bool offload = true;
    // Memberships per socket; 0: the kernel's limit.
    std::size_t memberships_per_socket = 0;
};

Result<void> check(const MulticastOptions& options);
// Bytes that fit in one unfragmented datagram; 0 if the MTU leaves no room.
std::size_t payload_for(const MulticastOptions& options);

Result<void> set_option(int descriptor, int level, int name, int value, const char* what);
struct SocketOption {
    int level, name, value;
    const char* what;
};
// Sets options in order and stops at the first one refused by the kernel.
Result<void> set_options(int descriptor, std::initializer_list<SocketOption> options);
// Makes an IPv4 socket send multicasts on this interface with this source address.
Result<void> multicast_from(int descriptor, const Interface& interface, const SocketAddress& source);
// Makes the socket receive only groups joined by this socket, not groups joined by other sockets of the host.
Result<void> receive_own_groups(int descriptor, int family);
// Joins or leaves a group. how: MCAST_JOIN_GROUP or MCAST_LEAVE_GROUP. Returns 0 or an errno value; ENOBUFS
// or ENOMEM: the kernel allows no more memberships on this socket. Allocates no memory, because destructors
// leave groups.
int change_membership(int descriptor, int how, const SocketAddress& group, unsigned interface_index);
// True for errno values that mean that the kernel has no room to send now.
bool is_full(int error);
// Approximate share of a receive buffer that the kernel charges for a datagram: the data, rounded up, plus
// the kernel's bookkeeping.
constexpr std::size_t datagram_cost(std::size_t bytes) {
    return (bytes + 2047) / 2048 * 2048 + 768;
}
// Space for a control message: UDP_SEGMENT has 16 bits, UDP_GRO an int.
template <typename Note>
struct UdpControl {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(Note))> bytes;
};
// Returns the size of the datagrams in a received run (UDP_GRO), or `otherwise` if the message is not a run.
std::size_t run_unit(msghdr& message, std::size_t otherwise);
// Opens a non-blocking, close-on-exec UDP socket.
Result<FileDescriptor> open_datagram_socket(int family);
// Requests a buffer beyond the system's limit first, which needs privilege, then within the limit. Returns
// the granted size. `forced` and `limited` are SO_RCVBUFFORCE and SO_RCVBUF, or the corresponding options for
// sending.
Result<std::size_t> size_buffer(int descriptor, std::size_t bytes, int forced, int limited);

}  // namespace mcastcoll::transport
