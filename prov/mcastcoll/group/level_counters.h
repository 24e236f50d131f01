// Statistics of the levels outside the engine.
#pragma once

#include <cstdint>

namespace mcastcoll::group {

struct LevelCounters {
    // Operations submitted by the application. Blocking operations inside one host count only as
    // host_operations.
    std::uint64_t group_operations = 0, group_bytes = 0;
    std::uint64_t host_operations = 0, host_bytes = 0, host_single_copies = 0, host_sleeps = 0;
    std::uint64_t operations_by_reduction = 0, operations_by_chains = 0, operations_by_split = 0,
                  block_bytes_broadcast = 0;
    std::uint64_t site_pieces_sent = 0, site_bytes_sent = 0, site_bad_pieces = 0;
    std::uint64_t unproven_packets = 0;  // failed authentication
    std::uint64_t exchange_pieces_sent = 0, exchange_bytes_sent = 0, exchange_bad_pieces = 0;
};

struct NamedLevelCounter {
    const char* name;
    std::uint64_t LevelCounters::*member;
};
inline constexpr NamedLevelCounter kLevelCounters[] = {
    {"group_operations", &LevelCounters::group_operations},
    {"group_bytes", &LevelCounters::group_bytes},
    {"host_operations", &LevelCounters::host_operations},
    {"host_bytes", &LevelCounters::host_bytes},
    {"host_single_copies", &LevelCounters::host_single_copies},
    {"host_sleeps", &LevelCounters::host_sleeps},
    {"operations_by_reduction", &LevelCounters::operations_by_reduction},
    {"operations_by_chains", &LevelCounters::operations_by_chains},
    {"operations_by_split", &LevelCounters::operations_by_split},
    {"block_bytes_broadcast", &LevelCounters::block_bytes_broadcast},
    {"site_pieces_sent", &LevelCounters::site_pieces_sent},
    {"site_bytes_sent", &LevelCounters::site_bytes_sent},
    {"site_bad_pieces", &LevelCounters::site_bad_pieces},
    {"unproven_packets", &LevelCounters::unproven_packets},
    {"exchange_pieces_sent", &LevelCounters::exchange_pieces_sent},
    {"exchange_bytes_sent", &LevelCounters::exchange_bytes_sent},
    {"exchange_bad_pieces", &LevelCounters::exchange_bad_pieces},
};
static_assert(sizeof(LevelCounters) == std::size(kLevelCounters) * sizeof(std::uint64_t),
              "a counter is missing from the list");

}  // namespace mcastcoll::group
