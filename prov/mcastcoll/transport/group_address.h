// Addresses that groups multicast to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "transport/socket_address.h"

namespace mcastcoll {

// How many random bytes random_group_address() uses.
inline constexpr std::size_t kGroupRandomBytes = 16;

// A group address and port out of `random`: IPv4 from the administratively scoped 239/8 with 24 random bits,
// keeping off the blocks that are assigned or that share their Ethernet address with the never-filtered
// 224.0.0/24; IPv6 from ff15::/16 (transient, site scope) with 112 random bits. The port, 20000 to 32767,
// stays below the ephemeral range.
SocketAddress random_group_address(int family, std::span<const std::byte, kGroupRandomBytes> random);

// The address of an aligned range of a group's ranks, the same for everybody who knows the group's key. It is
// drawn from the key as if from a generator, so that it is as random as the key is.
SocketAddress range_group_address(int family, GroupKey parent, std::uint32_t level, std::uint32_t index,
                                  std::uint16_t port);

}  // namespace mcastcoll
