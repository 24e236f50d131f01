// An aligned range is a block of 2^level consecutive ranks of the parent that begins at a multiple of its
// size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mcastcoll::engine {

// Ranks [first, end) of the parent.
struct AlignedRange {
    std::uint32_t level = 0, index = 0;
    std::uint32_t first() const { return index << level; }
    // The parent's size cuts off the last range of a level.
    std::uint32_t end(std::uint32_t parent_members) const;
    friend bool operator==(const AlignedRange&, const AlignedRange&) = default;
};

// Returns the fewest aligned ranges, in order, whose disjoint union is the subset (sorted, without
// repetition). Ranges of several levels may contain the same ranks because the parent's size cuts them off:
// the lowest level is returned.
std::vector<AlignedRange> exact_cover(std::span<const std::uint32_t> subset, std::uint32_t parent_members);

}  // namespace mcastcoll::engine
