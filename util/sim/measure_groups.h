// What whole groups cost on many hosts with several processes each: they join, do separated operations, each
// timed on every rank, and leave.
#pragma once

#include <utility>

#include "measure.h"

namespace mcastcoll::sim {

struct GroupExperiment : Conditions {
    std::uint32_t hosts = 1, per_host = 1;
    std::vector<CollectiveKind> kinds;  // in this order, each so many times
    std::uint32_t operations = 1;
    std::uint64_t bytes = 8;
    std::optional<std::uint32_t> root;  // none: every rank in turn
    engine::Repair policy = engine::Repair::pull;
    Nanoseconds settle = Nanoseconds::from_us(200);
    // A rank that dies in the middle of an operation, counted over all kinds: everybody else is to be told.
    struct Kill {
        std::uint32_t rank = 0;
        std::size_t operation = 0;
    };
    std::optional<Kill> kill;

    std::uint32_t members() const { return hosts * per_host; }
};

struct GroupMeasured {
    // What rank 0 has, and the most that any other has.
    struct Share {
        std::uint64_t rank0 = 0, most = 0;
        double mean = 0;  // of all
    };
    Nanoseconds join{};   // from the first call until all have joined
    Nanoseconds leave{};  // from the end of the last operation until all have let go of the group
    // Until then: sent, and bytes also received.
    Share join_messages, join_datagrams, join_bytes_sent, join_bytes_received;
    Share peak_bytes;                                             // memory of groups and joins, at any time
    std::vector<std::pair<CollectiveKind, Measured>> operations;  // before somebody died
    Nanoseconds known{};         // from the death until the last of the others was told
    std::uint64_t failures = 0;  // what an oracle found
    std::string trouble;         // the first of them
    std::uint64_t events = 0;
};

GroupMeasured measure_groups(const GroupExperiment& experiment);

}  // namespace mcastcoll::sim
