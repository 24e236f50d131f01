// The sockets of a datagram endpoint: one with its own address, for sending and for received unicasts, and
// another for each group.
//
// A group's socket is bound to the group's address, not only to a port. Such a socket takes no datagrams from
// other sockets of the host and receives only its group, and the kernel's limit of memberships per socket
// (usually 20) does not matter. The cost is one descriptor per group.
#pragma once

#include <sys/uio.h>

#include "base/file_descriptor.h"
#include "provider/settings.h"
#include "transport/verbs_transport.h"

namespace mcastcoll::datagram {

// Opens the UD queue pair that serves all groups over RDMA, beside the socket for unicasts. UD has no ports,
// so the address alone identifies a group; the port of a join is ignored. The device does not report the
// group of a received datagram. A group used only for sending must therefore not be joined; InfiniBand
// requires the join all the same.
Result<std::unique_ptr<transport::VerbsTransport>> open_queue_pair(const transport::Interface& interface,
                                                                   const provider::Settings& settings,
                                                                   int family);
inline transport::SocketAddress without_port(const transport::SocketAddress& group) {
    return group.with_port(0).with_scope(0);
}

// Opens the endpoint's own socket, bound to `address`, which may be the wildcard and may have port 0.
// Multicasts are sent on `interface`.
Result<FileDescriptor> open_own_socket(const transport::Interface& interface,
                                       const provider::Settings& settings,
                                       const transport::SocketAddress& address);
// Opens a socket that is bound to the group's address and has joined the group.
Result<FileDescriptor> open_group_socket(const transport::Interface& interface,
                                         const provider::Settings& settings,
                                         const transport::SocketAddress& group);

// Sends a message in pieces. Returns 0 or an errno value.
int transmit(int socket, std::span<const iovec> pieces, const transport::SocketAddress& to);
// Sends packets of `unit` bytes each, or a single packet.
int transmit(int socket, Bytes packets, std::size_t unit, const transport::SocketAddress& to);
}  // namespace mcastcoll::datagram
