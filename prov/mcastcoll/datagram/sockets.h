// The sockets of a datagram endpoint: one with its own address, which sends everything and receives what is
// sent to it alone, and one for each group that it hears.
//
// A group's socket is bound to the group's address, not to a mere port: so it never takes datagrams away from
// another socket of the host, hears nothing of groups that others have joined, and the kernel's limit of
// memberships per socket (20 as a rule) does not matter. It costs a descriptor for each group.
#pragma once

#include <sys/uio.h>

#include "base/file_descriptor.h"
#include "provider/settings.h"
#include "transport/verbs_options.h"

namespace mcastcoll::ofi::datagram {

// Groups over RDMA, beside a socket for single peers: one UD queue pair for all of them. UD has no ports: a
// group is its address, whatever port it is joined with. Which group a datagram came to is not told, so what
// is only sent to must not be joined; on InfiniBand it has to be.
Result<std::unique_ptr<VerbsTransport>> open_queue_pair(const Interface& interface, const Settings& settings,
                                                        int family);
inline SocketAddress without_port(const SocketAddress& group) {
    return group.with_port(0).with_scope(0);
}

// Bound to `address`, whose port may be 0 and which may be the wildcard; multicasts leave by `interface`.
Result<FileDescriptor> open_own_socket(const Interface& interface, const Settings& settings,
                                       const SocketAddress& address);
Result<FileDescriptor> open_group_socket(const Interface& interface, const Settings& settings,
                                         const SocketAddress& group);

// Sends a message in pieces. 0, or errno.
int transmit(int socket, std::span<const iovec> pieces, const SocketAddress& to);
// Packets of `unit` bytes each, or a single one.
int transmit(int socket, Bytes packets, std::size_t unit, const SocketAddress& to);
}  // namespace mcastcoll::ofi::datagram
