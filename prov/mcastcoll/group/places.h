// From the places that members tell each other to the clusters that a group's levels are made of.
#pragma once

#include <span>
#include <vector>

#include "levels/placement.h"
#include "topology/map.h"
#include "topology/policy.h"
#include "wire/join.h"

namespace mcastcoll::group {

wire::ByteString encode_policy(const topology::Policy& policy);

wire::ByteString encode_place(const topology::Place& place);
// Nothing is known of who sends nonsense.
topology::Place decode_place(const wire::ByteString& place);

// Encoded places in rank order, and rank 0's encoded policy. Who says nothing, or nonsense, is a host of its
// own, in the site of all others like it.
topology::Map make_map(std::span<const wire::ByteString> places, const wire::ByteString& policy);
std::vector<levels::MemberPlace> places_in(const topology::Map& map);
// For each of these members of one host, its clusters inside the host, outside in.
std::vector<std::vector<std::uint32_t>> clusters_in_host(const topology::Map& map,
                                                         const std::vector<std::uint32_t>& members);

}  // namespace mcastcoll::group
