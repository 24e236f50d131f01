// What a process tells of its groups: what mcastcoll-topo shows of those that run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "topology/levels.h"
#include "topology/map.h"
#include "topology/policy.h"

namespace mcastcoll::topology {

struct ReportedLevel {
    Level level{};
    bool connects = false;
    std::string lane;       // what carries it: "multicast", "shared memory", "messages"
    std::string algorithm;  // "flat"
    std::string why;        // one sentence
};

struct ReportedGroup {
    std::uint64_t key = 0;
    Rank rank{};  // of the process that reports
    std::vector<Place> places;
    Policy policy;
    std::vector<ReportedLevel> levels;
    std::string state;  // "ready", "failed: ..."
};

struct Report {
    std::vector<ReportedGroup> groups;
    std::vector<std::pair<std::string, std::uint64_t>> counters;
};

// What the map and its policy have to say, to be corrected where the group does otherwise.
std::vector<ReportedLevel> describe_levels(const Map& map);

}  // namespace mcastcoll::topology
