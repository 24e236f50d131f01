// The reachability map: which members receive multicasts, and whose multicasts are received. If the multicast
// does not work, no member receives another member's multicasts, and the lists are empty.
#pragma once

#include <vector>

#include "base/types.h"

namespace mcastcoll::engine {

struct ReachabilityMap {
    bool works = false;
    std::vector<Rank> deaf, mute;  // ascending: members that cannot receive; members that cannot be received
    bool operator==(const ReachabilityMap&) const = default;
};

// Writes a map for a message: deaf ranks, then mute ranks, 4 bytes each. The number of deaf ranks travels in
// the header.
void encode(const ReachabilityMap& map, std::vector<std::byte>& out);
// Returns false if the bytes are not a map of a group of this many members.
bool decode(Bytes bytes, std::uint32_t deaf_count, std::uint32_t members, ReachabilityMap& map);

}  // namespace mcastcoll::engine
