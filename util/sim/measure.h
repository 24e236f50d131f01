// How long broadcasts take in a given network: separated operations, each timed on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "world.h"

namespace mcastcoll::sim {

struct Experiment {
    std::uint32_t ranks = 16, operations = 100, groups = 1;
    std::uint64_t bytes = 8, seed = 1;
    std::optional<std::uint32_t> root;     // none: every rank in turn
    std::optional<engine::Repair> policy;  // none: the binomial tree, without an engine
    std::optional<std::uint32_t> slots, window, fragment_bytes, retransmit_bytes;
    engine::RootSync root_sync = engine::RootSync::none;
    Nanoseconds root_delay{};
    Model model;
    Faults faults;
    Arrival arrival;
    Nanoseconds settle = Nanoseconds::from_us(200);
    std::function<void(Nanoseconds now, std::uint64_t events)> progress;
};

struct Measured {
    Nanoseconds median{}, p99{};  // over all ranks and operations, from the operation's start
    Nanoseconds last_median{};    // of the last rank of each operation
    Nanoseconds round_trip{};     // of an empty message between two idle hosts
    double spread = 0;            // (last - first receiver) / median of an operation; the median of that
    double messages_per_operation = 0, datagrams_per_operation = 0;
    std::int64_t peak_bytes_per_member = 0;
    std::uint64_t failures = 0;  // operations that failed or were wrong, and anything else an oracle found
    std::string trouble;         // the first of them
    std::string configuration;   // of the group, where it is not the engine's own default
    std::uint64_t events = 0;
    Nanoseconds duration{};
};

// Memory per member decides how many fit: large groups get fewer slots, smaller retransmit buffers and
// windows.
engine::GroupConfig config_for(const Experiment& experiment);
std::string describe(const engine::GroupConfig& config);

Measured measure(const Experiment& experiment);

}  // namespace mcastcoll::sim
