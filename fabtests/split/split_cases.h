// What the two ends of a connection between sites do and expect.  Each end is a process of its own, in a site
// of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "relay/endpoint.h"

namespace mcastcoll::fabtest {

// What the relay between the two sites can do besides its work: what a real one does only on a bad day.
struct RelayFaults {
    int accept_after_ms = 0;   // connections wait in a queue that is full
    int preface_after_ms = 0;  // the target hears nothing for so long
    bool byte_by_byte = false;
    bool no_preface = false;  // as any program on the gateway's host would connect
    bool unknown_version = false;
};

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

// split_relay.cc: both sites' gateways in one process, as plain as can be.  Listens at both, writes the two
// ports to a descriptor, and until it is killed takes prefaces, connects to the targets from the other
// gateway's address, says the preface there, and carries bytes both ways.
[[noreturn]] void run_relay(const RelayFaults& faults, int tell_fd);

// One site's gateway in a process of its own, as plain: a connection between gateways for each connection of
// a program, and nothing kept warm.  What splitting alone does, to compare with.
[[noreturn]] void run_gateway(const std::string& sites_file, const std::string& site);

}  // namespace mcastcoll::fabtest
