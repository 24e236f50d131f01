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
    // At most the parent's size.
    std::uint32_t end(std::uint32_t parent_members) const;
    friend bool operator==(const AlignedRange&, const AlignedRange&) = default;
};

// The fewest aligned ranges, in order, with the subset (sorted, without repetition) as their disjoint union.
// Among ranges that are equal because the parent's size cuts them, the lowest level.
std::vector<AlignedRange> exact_cover(std::span<const std::uint32_t> subset, std::uint32_t parent_members);

}  // namespace mcastcoll::engine
