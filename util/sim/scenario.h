// What a seed draws: engines alone, and whole groups, with scripts, a network and its weather, deaths.
// Everything that the protocol promises to survive is in here somewhere.
#pragma once

#include <cstdint>
#include <string>

#include "world.h"

namespace mcastcoll::sim {

// Engines alone.
Options draw_scenario(std::uint64_t seed);
// One line for a report.
std::string summary_of(const Options& options);

// Groups as the seed draws them: who is where, what they do, which weather, who dies or computes. Returns
// what went wrong, or "".
std::string run_groups(std::uint64_t seed);
// One line for a report.
std::string summary_of_groups(std::uint64_t seed);

}  // namespace mcastcoll::sim
