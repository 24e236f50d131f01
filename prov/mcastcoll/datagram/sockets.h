// The sockets of a datagram endpoint: one with its own address, which sends everything and receives what is
// sent to it alone, and one for each group that it hears.
//
// A group's socket is bound to the group's address, not to a mere port: so it never takes datagrams away from
// another socket of the host, hears nothing of groups that others have joined, and the kernel's limit of
// memberships per socket (20 as a rule) does not matter. It costs a descriptor for each group.
#pragma once

#include <rdma/fi_endpoint.h>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "provider/settings.h"
#include "transport/interface.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi::datagram {

// Of datagrams: what fits in one that is not fragmented. Of reliable messages: what they are cut from at
// most.
std::size_t largest_message(const Interface& interface, int family, fi_ep_type type);

// Bound to `address`, whose port may be 0 and which may be the wildcard; multicasts leave by `interface`.
Result<FileDescriptor> open_own_socket(const Interface& interface, const Settings& settings,
                                       const SocketAddress& address);
Result<FileDescriptor> open_group_socket(const Interface& interface, const Settings& settings,
                                         const SocketAddress& group);

}  // namespace mcastcoll::ofi::datagram
