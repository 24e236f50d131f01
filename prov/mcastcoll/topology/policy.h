// Settings shared by the members of a group, because different values would lead to different trees: the
// levels in use and the algorithm of each. Rank 0's policy travels in the welcome.
#pragma once

#include "topology/algorithms.h"
#include "topology/place.h"

namespace mcastcoll::topology {

struct Policy {
    // A single level: each member is a host of its own, in one common segment.
    bool flat = false;
    // Levels that are ignored. Without the segment level every host is a segment of its own (no multicast).
    // Without the host level the levels inside it are ignored, too, and every process is a host of its own.
    LevelSet off;
    Algorithms algorithms;

    // Whether the level is in use.
    bool counts(Level level) const {
        if (level == Level::wan) return true;
        if (flat || off.has(level)) return false;
        return !is_inside_host(level) || !off.has(Level::host);
    }
    bool operator==(const Policy&) const = default;
};

// u8 version (1), u8 flat, u16 levels off, then u8 shape, u8 arity for each level.
inline constexpr std::size_t kPolicyBytes = 4 + 2 * kLevels;
std::array<std::byte, kPolicyBytes> encode(const Policy& policy);
std::optional<Policy> decode_policy(Bytes bytes);

}  // namespace mcastcoll::topology
