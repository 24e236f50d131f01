// Both sites' gateways in one process, as plain as can be: takes a preface, connects to the target from the
// other gateway's address, says the preface there, and carries bytes both ways.  It can also do what a real
// one does only on a bad day.
#pragma once

#include <string>

namespace mcastcoll::fabtest {

struct RelayFaults {
    int accept_after_ms = 0;   // connections wait in a queue that is full
    int preface_after_ms = 0;  // the target hears nothing for so long
    bool byte_by_byte = false;
    bool no_preface = false;  // as any program on the gateway's host would connect
    bool unknown_version = false;
};

// Listens at both gateways, writes the two ports to a descriptor, and carries until it is killed.
[[noreturn]] void run_relay(const RelayFaults& faults, int tell_fd);

// One site's gateway in a process of its own, as plain: a connection between gateways for each connection of
// a program, and nothing kept warm.  What splitting alone does, to compare with.
[[noreturn]] void run_gateway(const std::string& sites_file, const std::string& site);

}  // namespace mcastcoll::fabtest
