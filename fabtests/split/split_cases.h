// What the two ends of a connection between sites do and expect.  Each end is a process of its own, in a site
// of its own.
#pragma once

#include <span>
#include <string_view>

#include "relay/endpoint.h"
#include "split_relay.h"

namespace mcastcoll::fabtest {

struct Case {
    std::string_view name;
    void (*client)(const relay::Endpoint& server);
    void (*server)(int listener);
    int server_domain = 2;  // AF_INET
    RelayFaults faults{};
};

// split_cross.cc: two that connect to each other at once.
void client_crosses(const relay::Endpoint& server);
void server_crosses(int listener);

std::span<const Case> all_cases();

}  // namespace mcastcoll::fabtest
