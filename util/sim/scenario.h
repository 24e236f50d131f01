// A scenario drawn from a seed: groups, scripts, a network and its weather, deaths. Everything that the
// protocol promises to survive is in here somewhere.
#pragma once

#include <cstdint>
#include <string>

#include "world.h"

namespace mcastcoll::sim {

Options draw_scenario(std::uint64_t seed);
// One line for a report.
std::string summary_of(const Options& options);

}  // namespace mcastcoll::sim
