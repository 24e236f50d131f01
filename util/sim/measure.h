// Duration of collectives in a given network: separated operations, each timed on every rank, or operations
// back to back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulation.h"
#include "world.h"

namespace mcastcoll::sim {

struct Experiment : Conditions {
    std::uint32_t ranks = 16, operations = 100, groups = 1;
    std::uint32_t warm_up = 0;  // operations before the counted ones, in which engines measure round trips
    CollectiveKind kind = CollectiveKind::broadcast;  // or barrier, allreduce
    std::uint64_t bytes = 8;
    std::optional<std::uint32_t> root;     // empty: every rank in turn
    std::optional<engine::Repair> policy;  // empty: the binomial tree, without an engine
    std::optional<std::uint32_t> slots, window, fragment_bytes, retransmit_bytes;
    std::optional<std::uint32_t> channels;  // of the sync policy
    engine::Redundancy redundancy = engine::Redundancy::automatic;
    engine::RootSync root_sync = engine::RootSync::none;
    Nanoseconds root_delay{};
    // Each rank enters the next broadcast right after the previous one.
    bool sustained = false;
    bool checkpoints = true;  // false: members never agree on a watermark, as if no repair were needed
    Arrival arrival;
    Nanoseconds settle = Nanoseconds::from_us(200);
    std::function<void(Nanoseconds now, std::uint64_t events)> progress;
};

struct Measured {
    using Times = std::vector<Nanoseconds>;
    // Of the counted operations, unless sustained: for every rank, the time from the common start to
    // completion; and the roots.
    std::vector<Times> times;
    std::vector<std::uint32_t> roots;
    Nanoseconds each{};  // sustained: total time divided by the number of operations
    Network::Traffic traffic;
    engine::Counters counters;
    std::int64_t peak_bytes_per_member = 0;
    std::uint64_t failures = 0;  // operations that failed or were wrong, and other findings of an oracle
    std::string first_failure;   // the first of them
    std::string configuration;   // of the group, where it differs from the engine's default
    std::uint64_t events = 0;
    Nanoseconds duration{};

    Nanoseconds quantile(double share) const;    // over all ranks and operations
    Nanoseconds last(double share = 0.5) const;  // the last rank of each operation; over operations
    // Without the root, which completes as soon as it has sent.
    Nanoseconds median_received() const;
    Nanoseconds first() const;  // the first receiver of each operation; median
    double spread() const;      // (last - first receiver) / median of an operation; median
    Times by_rank() const;      // medians over operations
};

Measured measure(const Experiment& experiment);

inline double in_us(Nanoseconds time) {
    return static_cast<double>(time.value) / 1000;
}

}  // namespace mcastcoll::sim
