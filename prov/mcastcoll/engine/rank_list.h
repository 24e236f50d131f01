// At most kMaxArity + 1 ranks, in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kMaxArity = 8;

struct RankList {
    std::array<Rank, kMaxArity + 1> ranks{};
    std::uint32_t count = 0;
    void add(Rank rank) { ranks[count++] = rank; }
    const Rank* begin() const { return ranks.data(); }
    const Rank* end() const { return ranks.data() + count; }
    // Index of a rank, or `count`.
    std::uint32_t place(Rank rank) const {
        return static_cast<std::uint32_t>(std::find(begin(), end(), rank) - begin());
    }
    bool contains(Rank rank) const { return place(rank) < count; }
    // A mask in which bit i is set for each entry i.
    std::uint32_t bits() const { return (1U << count) - 1; }
};

}  // namespace mcastcoll::engine
