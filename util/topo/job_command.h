// mcastcoll-topo --job: running jobs, of this host or of many.
#pragma once

#include <string>

#include "crew/crew.h"

namespace mcastcoll::topo {

struct JobCommand {
    std::string folder, svg, page;
    crew::Options crew;  // no hosts: those of a launcher, or this one
    std::uint64_t pid = 0;
    unsigned root = 0, times = 0;
    double every = 1;
    bool json = false, watch = false, metrics = false;
};

// Both return what the program ends with. serve_job: started by another one's --hosts.
int run_job(const JobCommand& command);
int serve_job(const JobCommand& command);

}  // namespace mcastcoll::topo
