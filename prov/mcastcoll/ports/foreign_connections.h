// Foreign connections to the private endpoint of an inner provider over TCP. The provider accepts every
// connection, and a message takes a posted receive as soon as its header has arrived. A few dozen connections
// stalled in the middle of a message therefore occupy all receives, and no member's message arrives any more.
// end_connections() closes the connections from hosts without members.
#pragma once

#include <cstddef>

#include "base/function_ref.h"
#include "transport/socket_address.h"

namespace mcastcoll::ports {

// Shuts down the process's TCP connections accepted at `own` whose peer `is_foreign` selects. Returns their
// number. Each socket is examined through a duplicate of its descriptor, so a descriptor closed and reused by
// another thread in the meantime is never shut down.
std::size_t end_connections(const transport::SocketAddress& own,
                            FunctionRef<bool(const transport::SocketAddress&)> is_foreign);

}  // namespace mcastcoll::ports
