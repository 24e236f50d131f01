// A member of a group as the others are told of it when it joins.
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.h"

namespace mcastcoll::wire {

using ByteString = std::vector<std::byte>;

// The longest of its strings.
inline constexpr std::size_t kMostAddressBytes = 128;

struct Peer {
    ByteString private_address;   // of the private inner endpoint
    ByteString multicast_source;  // encoded address that its multicasts come from; empty without multicast
    ByteString watch_point;       // encoded, see transport/watch_point.h
    ByteString place{};           // encoded, see topology/place.h; empty: nothing is known
    bool operator==(const Peer&) const = default;
};

}  // namespace mcastcoll::wire
