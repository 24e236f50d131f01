// Differences of the members' arrival times at an operation.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "network.h"
#include "random.h"
#include "script.h"

namespace mcastcoll::sim {

struct Arrival {
    enum class Pattern : std::uint8_t {
        together,
        skew,        // each member independently, up to `by` late
        root_first,  // all but the root are late by `by`
        root_late,   // the root is late
        one_late,    // one member that is not the root is late, chosen anew every time
    };
    Pattern pattern = Pattern::together;
    Nanoseconds by{};

    // Wakes each member when it arrives at a step that begins at `start`. The members' endpoints, from rank 0
    // on, are [first, first + members).
    void wake(Network& network, std::uint32_t first, std::uint32_t members, const Step& step,
              Nanoseconds start, std::uint32_t tag, Random& random) const;
};

}  // namespace mcastcoll::sim
