#include "engine/address_choice.h"

#include <bit>
#include <cassert>
#include <cstddef>
#include <utility>

namespace mcastcoll::engine {
namespace {

// Cost of one level of the tree, in multicasts of one fragment by the root: a message carries the fragment to
// a leader, which then multicasts the fragment. These are two sends, one after the other.
constexpr double kRelay = 2.0;
// Members of the parent outside the subset receive and drop every datagram. This costs the root nothing, and
// costs those members more, the more of them there are. Addressing the whole parent for a few members counts
// as this many sends.
constexpr double kOutside = 20.0;
// An additional address in the whole network counts as this many sends.
constexpr double kNewAddress = 8.0;

}  // namespace

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
