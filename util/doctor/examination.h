// One look from beginning to end, on all hosts at once: each gathers its facts, and all of them learn
// everybody's.
#pragma once

#include "crew/crew.h"
#include "facts.h"

namespace mcastcoll::doctor {

// The head's word is the others', too.
struct Wanted {
    unsigned listen_s = 3;  // for a question of a querier, and for a switch to forget a group
    unsigned query_interval_s = kUsualQueryInterval_s;  // the head's affair alone
    double share = 5;   // of the slowest interface's rate, per cent, that the fastest phase sends
    bool group = true;  // is formed, through libfabric
};

Result<Crew> examine(Wanted wanted, crew::Crew& crew);

}  // namespace mcastcoll::doctor
