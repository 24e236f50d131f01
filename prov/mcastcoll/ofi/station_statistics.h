// FI_MCASTCOLL_STATS=PREFIX: counters of an endpoint's groups as PREFIX.HOST.PID.json, when the endpoint
// closes.
#pragma once

#include <string>

#include "engine/effects.h"
#include "group/level_set.h"
#include "ports/multicast_sockets.h"

namespace mcastcoll::ofi {

struct StationCounters {
    engine::Counters groups;
    group::LevelCounters levels;
    std::uint64_t foreign_messages = 0, foreign_datagrams = 0;
    std::uint64_t doubts = 0;  // whether a member is still there
};

void write_statistics(const StationCounters& counters, const MulticastSockets& multicast,
                      const std::string& prefix);

}  // namespace mcastcoll::ofi
