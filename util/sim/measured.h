// The result of an experiment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine/effects.h"
#include "network.h"

namespace mcastcoll::sim {

struct Measured {
    using Times = std::vector<Nanoseconds>;
    // For each counted operation, unless sustained, the time of every rank from the common start to
    // completion; and the operation's root.
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
    // The median over all ranks but the root, which completes as soon as it has sent.
    Nanoseconds median_received() const;
    Nanoseconds first() const;  // the first receiver of each operation; median
    double spread() const;      // (last - first receiver) / median of an operation; median
    Times by_rank() const;      // medians over operations
};

}  // namespace mcastcoll::sim
