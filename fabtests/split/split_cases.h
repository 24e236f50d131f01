// Actions and expectations of the two ends of a connection between sites.  Each end is a process of its own,
// in a site of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sites/endpoint.h"

namespace mcastcoll::fabtest {

// Faults injected by the relay between the two sites, which are rare in real networks.
struct RelayFaults {
    int accept_after_ms = 0;   // connections wait in a full queue
    int preface_after_ms = 0;  // time before the target gets the preface
    bool byte_by_byte = false;
    bool no_preface = false;  // as an ordinary program on the gateway's host would connect
    bool unknown_version = false;
};

struct Case {
    std::string_view name;
    void (*client)(const sites::Endpoint& server);
    void (*server)(int listener);
    int server_domain = 2;  // AF_INET
    RelayFaults faults{};
};

// split_cross.cc: the two ends connect to each other at the same time.
void client_crosses(const sites::Endpoint& server);
void server_crosses(int listener);

std::span<const Case> all_cases();

// split_relay.cc: both sites' gateways in one process, as plain as possible. Listens at both gateways'
// addresses and writes the two ports to a descriptor. Until killed, reads prefaces, connects to the targets
// from the other gateway's address, sends the preface there, and carries bytes both ways.
[[noreturn]] void run_relay(const RelayFaults& faults, int report_fd);

// split_relay.cc: one site's gateway in a process of its own, equally plain: a connection between gateways
// for each connection of a program, and no connections kept open in advance. Measurements with it show the
// effect of splitting alone.
[[noreturn]] void run_gateway(const std::string& sites_file, const std::string& site);

}  // namespace mcastcoll::fabtest
