// What has to be the same for all members of a group, or they would not compute the same tree: which levels
// count and how each is connected. Rank 0's word travels in the welcome.
#pragma once

#include <array>
#include <optional>

#include "topology/algorithm.h"
#include "topology/levels.h"

namespace mcastcoll::topology {

struct Policy {
    // One level only: everybody is alone on its host, and all of them are in one segment.
    bool flat = false;
    // Levels that do not count. Without the segment every host is one of its own (there is no multicast);
    // without the host there is nothing in it either, and every process is a host of its own.
    LevelSet off;
    Algorithms algorithms;

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
