// mcastcoll-topo --job: running jobs, of one host or of many.
#pragma once

#include <cstdint>
#include <string>

#include "hostset/options.h"

namespace mcastcoll::topo {

struct JobCommand {
    std::string folder, svg, page;
    hostset::Options host_set;  // without hosts: the launcher's, or this host
    std::uint64_t pid = 0;
    unsigned root = 0, times = 0;
    double every = 1;
    bool json = false, watch = false, metrics = false;
};

// Shows running jobs; returns the exit status.
int run_job(const JobCommand& command);
// Serves the process that shows the jobs, in a process started by its --hosts; returns the exit status.
int serve_job(const JobCommand& command);

}  // namespace mcastcoll::topo
