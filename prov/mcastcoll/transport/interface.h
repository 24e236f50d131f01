// Finds the network interface for multicast: the interface named by the user, or the interface with the inner
// provider's address. Multicast sockets need its index, its address and its MTU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/socket_address.h"

namespace mcastcoll::transport {

struct Interface {
    unsigned index = 0;
    std::string name;
    std::uint32_t mtu = 0;
    // Source addresses for multicasts, with port 0: the address by which the interface was found, otherwise
    // the interface's first address of the family, a global IPv6 address before a link-local one.
    std::optional<SocketAddress> v4;
    std::optional<SocketAddress> v6;
    std::vector<SocketAddress> addresses;
    bool up = false;
    bool loopback = false;
    bool multicast = false;
    bool inner_bridge = false;  // no port of the bridge is a network card
};

Result<std::vector<Interface>> list_interfaces();

Result<Interface> find_interface_by_name(std::string_view name);
// Finds the interface with this local address (the port is ignored). For a wildcard, finds the first
// interface that is up, supports multicast, is not a loopback and has an address of the family, otherwise the
// loopback.
Result<Interface> find_interface_by_address(const SocketAddress& address);
// Finds an interface by a user's text: a name or an address.
Result<Interface> find_interface(std::string_view name_or_address);

// The kind of network of an address, ordered by suitability for a group on several hosts, best first. docker0
// has the same address on all hosts and claims to be faster than a network card.
enum class AddressReach { network, link, inner_bridge, loopback };
AddressReach reach_of(const SocketAddress& address, const std::vector<Interface>& interfaces);
// Returns the order in which to offer endpoints at these addresses, as indices into the list: by reach, and
// in the given order if the reach is equal. If some addresses belong to the interface wanted by the user (by
// name or address), all other addresses are left out. An invalid address stands for an endpoint without an
// address and is kept.
std::vector<std::size_t> order_addresses(std::span<const SocketAddress> addresses,
                                         const std::vector<Interface>& interfaces, std::string_view wanted);

}  // namespace mcastcoll::transport
