#include "engine/aligned_range.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace mcastcoll::engine {

std::uint32_t AlignedRange::end(std::uint32_t parent_members) const {
    const std::uint64_t uncut = (std::uint64_t{index} + 1) << level;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(uncut, parent_members));
}

std::vector<AlignedRange> exact_cover(std::span<const std::uint32_t> subset, std::uint32_t parent_members) {
    std::vector<AlignedRange> cover;
    for (std::size_t at = 0; at < subset.size();) {
        const std::uint32_t first = subset[at];
        assert(first < parent_members && (at == 0 || subset[at - 1] < first));
        // End of the run of consecutive ranks.
        std::uint32_t run = first;
        for (std::size_t i = at; i < subset.size() && subset[i] == run; ++i) ++run;
        AlignedRange range{0, first};
        // Finds the largest block that begins here. A block cut off at the parent's size is not enlarged
        // further.
        while (range.end(parent_members) < parent_members && range.index % 2 == 0) {
            const AlignedRange wider{range.level + 1, range.index / 2};
            if (wider.end(parent_members) > run) break;
            range = wider;
        }
        cover.push_back(range);
        at += range.end(parent_members) - first;
    }
    return cover;
}

}  // namespace mcastcoll::engine
