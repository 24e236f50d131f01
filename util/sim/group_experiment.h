// Whole groups to measure in a given network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/collective.h"
#include "base/types.h"
#include "engine/group_config.h"
#include "simulation.h"

namespace mcastcoll::sim {

struct GroupExperiment : Conditions {
    std::uint32_t hosts = 1, per_host = 1;
    std::vector<CollectiveKind> kinds;  // in this order, each so many times
    std::uint32_t operations = 1;
    std::uint64_t bytes = 8;
    std::optional<std::uint32_t> root;  // empty: every rank in turn
    engine::Repair policy = engine::Repair::pull;
    Nanoseconds settle = Nanoseconds::from_us(200);
    // A rank that fails during an operation, counted over all kinds: all survivors must be notified.
    struct Kill {
        std::uint32_t rank = 0;
        std::size_t operation = 0;
    };
    std::optional<Kill> kill;

    std::uint32_t members() const { return hosts * per_host; }
};

}  // namespace mcastcoll::sim
