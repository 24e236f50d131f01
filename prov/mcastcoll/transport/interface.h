// Finds the network interface to multicast on: the one the user named, or the one that owns the address the
// inner provider listens at. Multicast sockets need its index, its own address and its MTU.
#pragma once

#include <cstdint>
#include <optional>
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
};

Result<std::vector<Interface>> list_interfaces();

Result<Interface> find_interface_by_name(std::string_view name);
// The owner of a local address (its port does not matter). A wildcard means the first interface that is up,
// can multicast, is not a loopback and has an address of that family; the loopback when there is none.
Result<Interface> find_interface_by_address(const SocketAddress& address);
// What a user writes: a name, or an address.
Result<Interface> find_interface(std::string_view name_or_address);

}  // namespace mcastcoll
