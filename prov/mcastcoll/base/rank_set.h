// A set of ranks that is nearly everybody or nearly nobody of a group: only the exceptions are listed, so
// that a group of any size costs what its sick members cost. A view: the list belongs to somebody else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace mcastcoll {

class RankSet {
  public:
    // Exactly these. The list is in ascending order.
    static RankSet of(std::span<const Rank> ranks, std::uint32_t members) { return {ranks, false, members}; }
    static RankSet everybody_but(std::span<const Rank> ranks, std::uint32_t members) {
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
    // How many of the set come before this rank.
    std::uint32_t below(Rank rank) const {
        if (listed_.empty()) return complement_ ? index_of(rank) : 0;
        const auto listed = static_cast<std::uint32_t>(
            std::lower_bound(listed_.begin(), listed_.end(), rank) - listed_.begin());
        return complement_ ? index_of(rank) - listed : listed;
    }
    // The rank before which exactly `position` of the set come.
    Rank at(std::uint32_t position) const {
        if (!complement_) return listed_[position];
        // Before the i-th exception come listed_[i] - i of the set.
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
