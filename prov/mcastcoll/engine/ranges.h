// Which addresses a subset of a group multicasts to. Addresses are scarce: switches can tell few apart and a
// process may join few. So a subset borrows those of its parent, after Yu, Sur, Panda and others 2005:
//
//   An aligned range is a block of 2^level consecutive ranks of the parent that begins at a multiple of its
//   size. Every range has a group address of its own, joined by its members when the first subset that uses
//   it begins. Any subset is the disjoint union of few ranges that lie wholly inside it: their number is the
//   cover.
//
//   parent   everybody is spoken to at the parent's own address; who is not in the subset drops it by its key
//   chained  the root sends to one range after the other
//   tree     the root sends to its own range, and messages to a leader of each of the others, who multicasts
//            onward
//   own      a new random address, for what is too scattered for any of them
//
// A pure function of the two lists and of what members have room for; only rank 0 of the subset calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace mcastcoll::engine {

// Addresses of one group at most: more ranges than this are not worth it.
inline constexpr std::uint32_t kMostRanges = 16;

// Ranks [first, end) of the parent.
struct AlignedRange {
    std::uint32_t level = 0, index = 0;
    std::uint32_t first() const { return index << level; }
    // Cut at the parent's size.
    std::uint32_t end(std::uint32_t parent_members) const;
    friend bool operator==(const AlignedRange&, const AlignedRange&) = default;
};

// The fewest aligned ranges whose disjoint union is the subset, which is sorted and without repetition, in
// order. Of ranges that are equal because they are cut at the parent's size it takes that of the lowest
// level.
std::vector<AlignedRange> exact_cover(std::span<const std::uint32_t> subset, std::uint32_t parent_members);

enum class Plan : std::uint8_t { parent, chained, tree, own };
std::string_view name_of(Plan plan);

// What a plan costs a root per fragment, in units of one multicast to one address.
struct PlanCosts {
    double parent = 0, chained = 0, tree = 0, own = 0;
};
PlanCosts plan_costs(std::uint32_t subset_members, std::uint32_t parent_members, std::uint32_t ranges);

struct PlanChoice {
    Plan plan = Plan::own;
    std::vector<AlignedRange> cover;  // exact, whatever the plan is
    PlanCosts costs;
    bool scarce = false;  // somebody had no room for another address, which left no choice
};

// room: every member of the subset can join another address. wanted: what the user wants whatever it costs,
// if it can be had.
PlanChoice choose_plan(std::span<const std::uint32_t> subset, std::uint32_t parent_members, bool room,
                       std::optional<Plan> wanted = {});

}  // namespace mcastcoll::engine
