// Where and how an endpoint multicasts over UDP, out of its settings and its own address. Apart from the
// sockets, so that mcastcoll-doctor looks at what an endpoint would take.
#pragma once

#include "provider/settings.h"
#include "transport/udp_socket.h"

namespace mcastcoll::ofi {

struct MulticastChoice {
    Interface interface;
    int family = 4;
};

// The configured interface, else the one that has the inner endpoint's address (normalised), else loopback.
Result<MulticastChoice> choose_interface(const Settings& settings, Bytes own_address);
MulticastOptions multicast_options(const Settings& settings, const MulticastChoice& choice);
UdpMulticastOptions udp_options(const Settings& settings, const MulticastChoice& choice);
// The settings' port, else `otherwise` unless that is 0, else a random one.
SocketAddress random_group(const Settings& settings, int family, std::uint16_t otherwise,
                           std::span<const std::byte, kGroupRandomBytes> random);
// Datagrams that one root may have on their way to a receiver with such a buffer.
std::size_t window_of(std::size_t receive_buffer_bytes, std::size_t datagram_bytes);

}  // namespace mcastcoll::ofi
