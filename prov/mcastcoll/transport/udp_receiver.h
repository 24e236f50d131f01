// One receiving socket with memberships up to the kernel's limit. The socket is bound to a port that all
// processes of the host share; each socket gets its own copy of a multicast. Receives only groups joined by
// this socket on its own interface, and unicasts to the port.
#pragma once

#include "transport/udp_socket.h"

namespace mcastcoll::transport {

struct UdpReceiver {
    Result<void> open(const UdpMulticastOptions& options, std::uint16_t at);
    // Joins a group on this socket. ENOBUFS or ENOMEM: the kernel allows no more memberships on this socket.
    Result<void> join(const SocketAddress& group);
    void leave(const SocketAddress& group);
    std::uint64_t drops() const;

    FileDescriptor socket;
    unsigned interface_index = 0;
    std::uint16_t port = 0;
    std::size_t memberships = 0, buffer_bytes = 0;
    bool takes_runs = false;
};

}  // namespace mcastcoll::transport
