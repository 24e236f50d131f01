// Finds the network interface to multicast on: the one the user named, or the one that owns the address the
// inner provider listens at. Multicast sockets need its index, its own address and its MTU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/socket_address.h"

namespace mcastcoll {

struct Interface {
    unsigned index = 0;
    std::string name;
    std::uint32_t mtu = 0;
    // The addresses to send from, port 0: when found by address that very one, else the first, a global IPv6
    // address before a link-local one.
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
// The owner of a local address (its port does not matter). A wildcard means the first interface that is up,
// can multicast, is not a loopback and has an address of that family; the loopback when there is none.
Result<Interface> find_interface_by_address(const SocketAddress& address);
// What a user writes: a name, or an address.
Result<Interface> find_interface(std::string_view name_or_address);

// Where an address leads, the best for a group of several hosts first. docker0 has the same address on all
// hosts, and claims to be faster than a network card.
enum class AddressReach { network, link, inner_bridge, loopback };
AddressReach reach_of(const SocketAddress& address, const std::vector<Interface>& interfaces);
// In which order to offer endpoints at these addresses, by their places in the list: by reach, else as they
// are. Where some are of the interface that the user wants, by name or address, the others are left out. An
// invalid address stands for an endpoint without one, which is kept.
std::vector<std::size_t> order_addresses(std::span<const SocketAddress> addresses,
                                         const std::vector<Interface>& interfaces, std::string_view wanted);

}  // namespace mcastcoll
