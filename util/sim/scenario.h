// What a seed draws: engines alone, and whole groups, with scripts, a network and its weather, deaths.
// Everything that the protocol promises to survive is in here somewhere.
#pragma once

#include <cstdint>
#include <string>

namespace mcastcoll::sim {

// What went wrong in the groups as a seed draws them, or "": who is where, what they do, which weather, who
// dies or computes.
std::string run_groups(std::uint64_t seed);
// The same of groups, and then of engines alone.
struct SeedRun {
    std::string wrong;
    std::uint64_t packets = 0;  // a digest of all that arrived, and when: the same on all processors
};
SeedRun run_seed(std::uint64_t seed);
// One line for a report.
std::string summary_of_seed(std::uint64_t seed);

// Many seeds, each its own scenario, in several processes.
struct Campaign {
    std::uint64_t seeds = 0, first = 1;
    std::uint32_t jobs = 1;
};

// Prints every failure with the command that replays it, and "seeds N failed M" in the end. Returns the
// program's exit code: 0, or 1 when a seed failed.
int run_campaign(const Campaign& campaign);

}  // namespace mcastcoll::sim
