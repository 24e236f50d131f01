// Looks at this host. Each takes a bounded time, changes nothing, and says of what it could not see why.
#pragma once

#include "facts.h"
#include "ports/multicast_choice.h"

namespace mcastcoll::doctor {

// machine.cc, memory.cc
Machine look_at_machine();
Memory look_at_memory();

// libraries.cc. `provider` and `inner` are left to who opens an endpoint (end_to_end.h).
Libraries look_at_libraries();

// network.cc: the interface that the provider would take, and sockets on it. What is opened goes on to the
// experiment.
struct OpenedNetwork {
    Network facts;
    std::optional<ofi::MulticastChoice> choice;  // none: there is nothing to multicast on
};
OpenedNetwork look_at_network(const ofi::Settings& settings, Bytes own_address);
// Whether the kernel lists the interface as a member of the group.
Look<bool> is_member(const std::string& interface, const SocketAddress& group);

// rdma.cc
Rdma look_at_rdma(const ofi::Settings& settings, const std::optional<ofi::MulticastChoice>& choice);

// firewall.cc
Firewall look_at_firewall(const std::string& interface, int port, int family);

// querier.cc: listens on an interface for IGMP's or MLD's general queries.
class QuerierWatch {
  public:
    QuerierWatch(const Interface& interface, int family);
    // What was heard since the beginning; waits until that is so long ago.
    Querier wait(double seconds);

  private:
    FileDescriptor socket_;
    std::string why_not_;
    int family_;
    std::int64_t begun_ns_;
};

// system.cc: what probes share.

// The first line of a file, or why it cannot be read.
Look<std::string> first_line(const std::string& path);
Look<std::uint64_t> number_in(const std::string& path);
struct Ran {
    int code = -1;  // -1: it could not be run, or did not end in time
    std::string output, complaint;
};
// A program found by the PATH, ended after so many seconds. Where it stands in the way, what the launcher of
// an MPI job has put into the environment is left out.
Ran run_program(const std::vector<std::string>& words, unsigned seconds,
                const std::vector<std::string>& more_environment = {});

}  // namespace mcastcoll::doctor
