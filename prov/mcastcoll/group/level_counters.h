// What the levels outside the engine count, for the statistics.
#pragma once

#include <cstdint>
#include <iterator>

namespace mcastcoll::group {

struct LevelCounters {
    std::uint64_t host_operations = 0, host_single_copies = 0, host_sleeps = 0;
    std::uint64_t plans_reduction = 0, plans_chains = 0, plans_split = 0, block_bytes_broadcast = 0;
    std::uint64_t site_pieces_sent = 0, site_bytes_sent = 0, site_bad_pieces = 0;
    std::uint64_t exchange_pieces_sent = 0, exchange_bytes_sent = 0, exchange_bad_pieces = 0;
};

struct NamedLevelCounter {
    const char* name;
    std::uint64_t LevelCounters::*member;
};
inline constexpr NamedLevelCounter kLevelCounters[] = {
    {"host_operations", &LevelCounters::host_operations},
    {"host_single_copies", &LevelCounters::host_single_copies},
    {"host_sleeps", &LevelCounters::host_sleeps},
    {"plans_reduction", &LevelCounters::plans_reduction},
    {"plans_chains", &LevelCounters::plans_chains},
    {"plans_split", &LevelCounters::plans_split},
    {"block_bytes_broadcast", &LevelCounters::block_bytes_broadcast},
    {"site_pieces_sent", &LevelCounters::site_pieces_sent},
    {"site_bytes_sent", &LevelCounters::site_bytes_sent},
    {"site_bad_pieces", &LevelCounters::site_bad_pieces},
    {"exchange_pieces_sent", &LevelCounters::exchange_pieces_sent},
    {"exchange_bytes_sent", &LevelCounters::exchange_bytes_sent},
    {"exchange_bad_pieces", &LevelCounters::exchange_bad_pieces},
};
static_assert(sizeof(LevelCounters) == std::size(kLevelCounters) * sizeof(std::uint64_t),
              "a counter is missing from the list");

}  // namespace mcastcoll::group
