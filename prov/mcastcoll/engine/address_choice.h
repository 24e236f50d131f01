// Choice of the multicast addresses of a subset of a group. Addresses are scarce: switches distinguish few,
// and a process may join few. So a subset borrows its parent's addresses, after Yu, Sur, Panda and others
// 2005.
//
// Every aligned range (aligned_range.h) has its own group address, which the members join when the first
// subset with that range begins. Any subset is the disjoint union of few ranges inside it, its cover.
//
//     scheme   address
//     parent   the parent's address; members outside the subset drop the packets by their key
//     chained  the root multicasts to one range after the other
//     tree     the root multicasts to its own range and sends messages to a leader of each other range, which
//              multicasts onward
//     own      a new random address, for subsets that are too scattered
//
// The choice depends only on the two member lists and on whether every member can join another address. Only
// rank 0 of the subset calls choose_scheme().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/aligned_range.h"

namespace mcastcoll::engine {

// Largest number of addresses of one group: more ranges are not worth their cost.
inline constexpr std::uint32_t kMaxRanges = 16;

enum class AddressScheme : std::uint8_t { parent, chained, tree, own };
std::string_view name_of(AddressScheme scheme);

// Cost of each scheme to a root per fragment, in units of one multicast to one address.
struct AddressCosts {
    double parent = 0, chained = 0, tree = 0, own = 0;
};
AddressCosts address_costs(std::uint32_t subset_members, std::uint32_t parent_members, std::uint32_t ranges);

struct AddressChoice {
    AddressScheme scheme = AddressScheme::own;
    std::vector<AlignedRange> cover;  // exact cover of the subset, whichever scheme was chosen
    AddressCosts costs;
    bool scarce = false;  // a member cannot join another address, so the scheme is `parent`
};

// room: whether every member of the subset can join another address. wanted: the user's choice, taken
// whatever its cost, unless members lack room or the scheme needs more than kMaxRanges addresses.
AddressChoice choose_scheme(std::span<const std::uint32_t> subset, std::uint32_t parent_members, bool room,
                            std::optional<AddressScheme> wanted = {});

}  // namespace mcastcoll::engine
