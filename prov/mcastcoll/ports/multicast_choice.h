// Chooses where and how an endpoint multicasts over UDP, from its settings and its own address. Separate from
// the sockets, so that mcastcoll-doctor can examine the same choice.
#pragma once

#include "provider/settings.h"
#include "transport/udp_socket.h"

namespace mcastcoll::ports {

struct MulticastChoice {
    transport::Interface interface;
    int family = 4;
};

// Chooses the configured interface, otherwise the interface with the inner endpoint's address (normalised),
// otherwise the loopback.
Result<MulticastChoice> choose_interface(const provider::Settings& settings, Bytes own_address);
transport::MulticastOptions multicast_options(const provider::Settings& settings,
                                              const MulticastChoice& choice);
transport::UdpMulticastOptions udp_options(const provider::Settings& settings, const MulticastChoice& choice);
// Returns a random group address. Its port is the port of the settings; without this setting, the port is
// `otherwise`; if that is 0, the port is random.
transport::SocketAddress random_group(const provider::Settings& settings, int family, std::uint16_t otherwise,
                                      std::span<const std::byte, transport::kGroupRandomBytes> random);
// Returns the maximum number of datagrams in flight from one root to a receiver with this buffer.
std::size_t window_of(std::size_t receive_buffer_bytes, std::size_t datagram_bytes);

}  // namespace mcastcoll::ports
