// Many seeds, each its own scenario, in several processes.
#pragma once

#include <cstdint>

namespace mcastcoll::sim {

struct Campaign {
    std::uint64_t seeds = 1, first = 1;
    std::uint32_t jobs = 1;
};

// Prints every failure with the command that replays it, and "seeds N failed M" in the end. Returns the
// program's exit code: 0, or 1 when a seed failed.
int run_campaign(const Campaign& campaign);

}  // namespace mcastcoll::sim
