// A member of a group, as described in the welcome.
#pragma once

#include <cstddef>
#include <vector>

#include "base/types.h"

namespace mcastcoll::wire {

using ByteString = std::vector<std::byte>;

// Largest size of a byte string in Peer.
inline constexpr std::size_t kMaxAddressBytes = 128;

struct Peer {
    ByteString private_address;   // of the private inner endpoint
    ByteString multicast_source;  // encoded source address of its multicasts; empty without multicast
    ByteString watch_point;       // encoded data for detecting its death (transport/watch_point.h)
    ByteString place{};           // encoded, see topology/place.h; empty: unknown
    bool operator==(const Peer&) const = default;
};

}  // namespace mcastcoll::wire
