// An examination from start to end, on all hosts in step: each host gathers facts, and every host gets the
// facts of every host.
#pragma once

#include "facts.h"
#include "hostset/host_set.h"

namespace mcastcoll::doctor {

// The head's values apply on all hosts.
struct Wanted {
    unsigned listen_s = 3;  // time to wait for a querier's query, and for a switch to drop a group
    unsigned query_interval_s = kUsualQueryInterval_s;  // used on the head only
    double share = 5;   // percentage of the slowest interface's rate used in the fastest phase
    bool group = true;  // whether to form a group through libfabric
};

Result<Facts> examine(Wanted wanted, hostset::HostSet& host_set);

}  // namespace mcastcoll::doctor
