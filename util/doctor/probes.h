// Observations of this host. Each probe takes a bounded time, changes nothing, and gives a reason for each
// failed observation.
#pragma once

#include "facts.h"
#include "look.h"
#include "ports/multicast_choice.h"

namespace mcastcoll::doctor {

// machine.cc, memory.cc
Machine look_at_machine();
Memory look_at_memory();

// libraries.cc. Leaves `provider` and `inner` to the process that opens an endpoint (group_process.h).
Libraries look_at_libraries();

// network.cc: the interface that the provider would choose, and its sockets. The experiment uses the same
// interface.
struct OpenedNetwork {
    Network facts;
    std::optional<ports::MulticastChoice> choice;  // empty: no interface for multicast
};
OpenedNetwork look_at_network(const provider::Settings& settings, Bytes own_address);
// Whether the kernel lists the interface as a member of the group.
Look<bool> is_member(const std::string& interface, const transport::SocketAddress& group);

// rdma.cc
Rdma look_at_rdma(const provider::Settings& settings, const std::optional<ports::MulticastChoice>& choice);

// firewall.cc
Firewall look_at_firewall(const std::string& interface, int port, int family);

// system.cc: common functions of probes.

// Returns the first line of a file, or why it cannot be read.
Look<std::string> first_line(const std::string& path);
// Returns the number in a file's first line.
Look<std::uint64_t> number_in(const std::string& path);
struct Ran {
    int code = -1;  // -1: did not start, or did not end in time
    std::string output, complaint;
};
// Runs a program found through PATH, with a time limit in seconds. Removes the variables of an MPI job's
// launcher from the environment, since these would disturb the program.
Ran run_program(const std::vector<std::string>& words, unsigned seconds,
                const std::vector<std::string>& more_environment = {});

}  // namespace mcastcoll::doctor
