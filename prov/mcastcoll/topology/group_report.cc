#include "topology/group_report.h"

namespace mcastcoll::topology {

std::vector<ReportedLevel> describe_levels(const Map& map) {
    std::vector<ReportedLevel> result;
    for (std::size_t i = 0; i < kLevels; ++i) {
        const Level level = level_of(i);
        ReportedLevel& one = result.emplace_back();
        one.level = level;
        one.connects = map.connects(level);
        one.why = map.why(level);
        if (!one.connects) continue;
        if (is_inside_host(level)) {
            one.connects = false;
            one.why = "only barriers go by it: in a host all read what one has written";
            continue;
        }
        one.algorithm = map.policy().algorithms.at(level).name();
        one.lane = level == Level::host           ? "shared memory"
                   : one.algorithm == "multicast" ? "multicast"
                                                  : "messages";
    }
    return result;
}

}  // namespace mcastcoll::topology
