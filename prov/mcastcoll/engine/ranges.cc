#include "engine/ranges.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace mcastcoll::engine {
namespace {

// Cost in multicasts of one fragment by the root. A message carries the fragment to a leader, which then
// multicasts it: two sends one after the other, plus a little for the inner provider's work.
constexpr double kRelay = 2.0;
// Members of the parent outside the subset receive and drop every datagram. This costs the root nothing, and
// costs those members more, the more of them there are. Addressing the whole parent for a few members counts
// as this many sends.
constexpr double kOutside = 20.0;
// An additional address in the whole network counts as this many sends.
constexpr double kNewAddress = 8.0;

}  // namespace

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

std::string_view name_of(AddressScheme scheme) {
    constexpr std::string_view kNames[] = {"the parent's address",
                                           "ranges of the parent, one after the other",
                                           "ranges of the parent, as a tree", "an address of its own"};
    return kNames[static_cast<std::size_t>(scheme)];
}

AddressCosts address_costs(std::uint32_t subset_members, std::uint32_t parent_members, std::uint32_t ranges) {
    assert(subset_members > 0 && subset_members <= parent_members && ranges > 0);
    const double outside = parent_members - subset_members;
    // Depth of the tree: each level of messages doubles the number of ranges that have the fragment.
    return {.parent = 1 + kOutside * outside / parent_members,
            .chained = static_cast<double>(ranges),
            .tree = 1 + kRelay * std::bit_width(ranges - 1),
            .own = 1 + kNewAddress};
}

AddressChoice choose_scheme(std::span<const std::uint32_t> subset, std::uint32_t parent_members, bool room,
                            std::optional<AddressScheme> wanted) {
    AddressChoice choice;
    choice.cover = exact_cover(subset, parent_members);
    const auto ranges = static_cast<std::uint32_t>(choice.cover.size());
    choice.costs = address_costs(static_cast<std::uint32_t>(subset.size()), parent_members, ranges);
    choice.scheme = AddressScheme::parent;
    choice.scarce = !room;
    if (!room) return choice;
    const bool few = ranges <= kMaxRanges;
    if (wanted && (few || *wanted == AddressScheme::parent || *wanted == AddressScheme::own)) {
        choice.scheme = *wanted;
        return choice;
    }
    // Among equal costs prefer fewer addresses to join.
    double min = choice.costs.parent;
    for (const auto& [scheme, cost] : {std::pair{AddressScheme::own, choice.costs.own},
                                       std::pair{AddressScheme::chained, choice.costs.chained},
                                       std::pair{AddressScheme::tree, choice.costs.tree}}) {
        if (cost >= min || (!few && scheme != AddressScheme::own)) continue;
        min = cost;
        choice.scheme = scheme;
    }
    return choice;
}

}  // namespace mcastcoll::engine
