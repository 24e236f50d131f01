// What a site's processes may connect to in other sites, as an administrator says it in the sites file:
//
//     reach = 10.2.0.0/16, 10.3.0.0/16:5000-5999, [fd00:2::/64]:7400    or: none
//
// Networks, each with a port, a range of ports, or all of them.  Gateways on both sides hold to it.
#pragma once

#include <string_view>
#include <vector>

#include "relay/endpoint.h"
#include "topology/subnet.h"

namespace mcastcoll::relay {

struct Reach {
    topology::Subnet network;
    std::uint16_t first_port = 1, last_port = UINT16_MAX;

    bool contains(const Endpoint& target) const;
    // NETWORK, NETWORK:PORT or NETWORK:PORT-PORT; an IPv6 network stands in brackets before ports.
    static Result<Reach> parse(std::string_view text);
};

}  // namespace mcastcoll::relay
