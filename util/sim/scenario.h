// Scenarios drawn from a seed: engines alone, and whole groups, with scripts, a network and its faults, and
// failures. Together the scenarios cover everything that the protocol must survive.
#pragma once

#include <cstdint>
#include <string>

namespace mcastcoll::sim {

// Runs whole groups drawn from a seed: placement, operations, network faults, and members that fail or
// compute. Returns an error message or "".
std::string run_groups(std::uint64_t seed);
// The result of a seed: of its scenario with whole groups and, if that is right, of its scenario with
// engines.
struct SeedRun {
    std::string wrong;
    std::uint64_t packets = 0;  // a digest of arrivals and times: the same on every processor
};
SeedRun run_seed(std::uint64_t seed);
// Describes both scenarios of a seed in one line, for a report.
std::string summary_of_seed(std::uint64_t seed);

// Many seeds, each with its own scenario, in several processes.
struct Campaign {
    std::uint64_t seeds = 0, first = 1;
    std::uint32_t jobs = 1;
};

// Prints every failure with the command that replays it, and "seeds N failed M" at the end. Returns the
// program's exit code: 0, or 1 if a seed failed.
int run_campaign(const Campaign& campaign);

}  // namespace mcastcoll::sim
