// Cost of whole groups on many hosts with several processes each: the members join, do separated operations,
// each timed on every rank, and leave.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/collective.h"
#include "base/types.h"
#include "group_experiment.h"
#include "measured.h"

namespace mcastcoll::sim {

struct GroupMeasured {
    // Rank 0's value, and the maximum of the other ranks.
    struct Share {
        std::uint64_t rank0 = 0, max = 0;
        double mean = 0;  // of all
    };
    Nanoseconds join{};   // from the first call until all have joined
    Nanoseconds leave{};  // from the end of the last operation until all members have released the group
    // Messages and datagrams sent, and bytes sent and received, until all members have joined.
    Share join_messages, join_datagrams, join_bytes_sent, join_bytes_received;
    Share peak_bytes;                                             // memory of groups and joins, at any time
    std::vector<std::pair<CollectiveKind, Measured>> operations;  // before the failure
    Nanoseconds known{};         // from the failure until the last survivor was notified
    std::uint64_t failures = 0;  // findings of an oracle
    std::string first_failure;   // the first of them
    std::uint64_t events = 0;
};

GroupMeasured measure_groups(const GroupExperiment& experiment);

}  // namespace mcastcoll::sim
