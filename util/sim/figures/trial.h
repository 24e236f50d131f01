// One point of a figure: broadcasts of one size by one algorithm in one group.
#pragma once

#include "figure.h"
#include "measure.h"

namespace mcastcoll::sim {

using Policy = std::optional<engine::Repair>;
inline constexpr Policy kBinomial = std::nullopt;
std::string_view name_of(const Policy& policy);

// Rank 0 is the root, and a few broadcasts are not counted.
Experiment trial_for(const FigureOptions& options, const Policy& policy, std::uint32_t ranks,
                     std::uint32_t operations, std::uint64_t bytes = 8);
// Says which point it is. Throws std::runtime_error with what an oracle said.
Measured run_trial(const FigureOptions& options, const std::string& point, const Experiment& experiment);

}  // namespace mcastcoll::sim
