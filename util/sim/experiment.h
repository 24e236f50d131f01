// Collectives to measure in a given network.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "arrival.h"
#include "base/collective.h"
#include "base/types.h"
#include "engine/group_config.h"
#include "simulation.h"

namespace mcastcoll::sim {

struct Experiment : Conditions {
    std::uint32_t ranks = 16, operations = 100, groups = 1;
    std::uint32_t warm_up = 0;  // operations before the counted ones, in which engines measure round trips
    CollectiveKind kind = CollectiveKind::broadcast;  // or barrier, allreduce
    std::uint64_t bytes = 8;
    std::optional<std::uint32_t> root;     // empty: every rank in turn
    std::optional<engine::Repair> policy;  // empty: the binomial tree, without an engine
    std::optional<std::uint32_t> slots, window, fragment_bytes, retransmit_bytes;
    std::optional<std::uint32_t> channels;  // broadcast channels of the sync policy
    engine::Redundancy redundancy = engine::Redundancy::automatic;
    engine::RootSync root_sync = engine::RootSync::none;
    Nanoseconds root_delay{};
    // Whether each rank enters the next broadcast right after the previous one.
    bool sustained = false;
    bool checkpoints = true;  // false: members never agree on a watermark, as if no repair were needed
    Arrival arrival;
    Nanoseconds settle = Nanoseconds::from_us(200);
    std::function<void(Nanoseconds now, std::uint64_t events)> progress;
};

}  // namespace mcastcoll::sim
