// The targets in other sites to which a site's processes may connect, set by an administrator in the sites
// file:
//
//     reach = 10.2.0.0/16, 10.3.0.0/16:5000-5999, [fd00:2::/64]:7400    or: none
//
// A list of networks, each with a port, a range of ports, or all ports. The gateways of both sites enforce
// it.
#pragma once

#include <string_view>
#include <vector>

#include "sites/endpoint.h"
#include "topology/subnet.h"

namespace mcastcoll::sites {

struct Reach {
    topology::Subnet network;
    std::uint16_t first_port = 1, last_port = UINT16_MAX;

    bool contains(const Endpoint& target) const;
    // Parses NETWORK, NETWORK:PORT or NETWORK:PORT-PORT. An IPv6 network with ports is in brackets.
    static Result<Reach> parse(std::string_view text);
};

}  // namespace mcastcoll::sites
