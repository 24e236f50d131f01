// A set of either few ranks of a group or almost all ranks. Only the exceptions are listed, so the cost
// depends on their number and not on the size of the group. RankSet is a view and does not own the list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace mcastcoll {

class RankSet {
  public:
    // The set of exactly the ranks in the list, which is in ascending order.
    static RankSet of(std::span<const Rank> ranks, std::uint32_t members) { return {ranks, false, members}; }
    static RankSet all_but(std::span<const Rank> ranks, std::uint32_t members) {
        return {ranks, true, members};
    }

    std::uint32_t size() const {
        const auto listed = static_cast<std::uint32_t>(listed_.size());
        return complement_ ? members_ - listed : listed;
    }
    bool contains(Rank rank) const {
        if (listed_.empty()) return complement_;
        return std::binary_search(listed_.begin(), listed_.end(), rank) != complement_;
    }
    // Number of ranks in the set below this rank.
    std::uint32_t below(Rank rank) const {
        if (listed_.empty()) return complement_ ? index_of(rank) : 0;
        const auto listed = static_cast<std::uint32_t>(
            std::lower_bound(listed_.begin(), listed_.end(), rank) - listed_.begin());
        return complement_ ? index_of(rank) - listed : listed;
    }
    // The rank at this position in the set, counted from 0.
    Rank at(std::uint32_t position) const {
        if (!complement_) return listed_[position];
        // Before the i-th exception there are listed_[i] - i ranks of the set.
        std::uint32_t low = 0, high = static_cast<std::uint32_t>(listed_.size());
        while (low < high) {
            const std::uint32_t middle = (low + high) / 2;
            if (index_of(listed_[middle]) - middle > position)
                high = middle;
            else
                low = middle + 1;
        }
        return rank_of(position + low);
    }

  private:
    RankSet(std::span<const Rank> listed, bool complement, std::uint32_t members)
        : listed_(listed), complement_(complement), members_(members) {}

    std::span<const Rank> listed_;
    bool complement_;
    std::uint32_t members_;
};

}  // namespace mcastcoll
