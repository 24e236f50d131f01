// Common options of transports opened on an interface.
#pragma once

#include "transport/interface.h"

namespace mcastcoll::transport {

struct MulticastOptions {
    Interface interface;
    // 4 or 6: selects the interface's IPv4 or IPv6 address.
    int family = 4;
    int ttl = 1;
    // Upper bound of max_payload(); 0: none. Without a limit, the MTU of the loopback would need 2 MiB of
    // receive buffers.
    std::size_t payload_limit = 0;
    // Maximum number of different addresses joined at the same time; 0: as many as the device or the
    // descriptors allow.
    std::size_t max_memberships = 0;

    int address_family() const { return family == 4 ? AF_INET : AF_INET6; }
    const std::optional<SocketAddress>& address() const { return family == 4 ? interface.v4 : interface.v6; }
};

}  // namespace mcastcoll::transport
