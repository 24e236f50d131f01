// Everybody's addresses in a welcome, in few bytes. Members differ in a few bytes of each address, so the
// table goes by columns: of each address all lengths, all first bytes, all second bytes and so on, and the
// members in an order that keeps hosts together, if need be. What is equal then or repeats, zstd finds. "The
// welcome" of FORMAT.md.
#pragma once

#include <optional>

#include "wire/peer.h"

namespace mcastcoll::wire {

// Of one member: its range, a rank of the order, its sequence, and four strings with their lengths.
inline constexpr std::size_t kMaxUnpackedBytes = 1 + 4 + 4 + 4 * (1 + kMostAddressBytes);

// All of them by rank, and so of one length.
ByteString pack(const std::vector<Peer>& peers, const std::vector<std::uint8_t>& range_of,
                const std::vector<std::uint32_t>& sequences);

struct PeerTable {
    std::vector<Peer> peers;
    std::vector<std::uint8_t> range_of;
    std::vector<std::uint32_t> sequences;
};
// The table of exactly so many members, or nothing. It takes at most kMaxUnpackedBytes for each of them,
// whatever the bytes say, before they are looked at.
std::optional<PeerTable> unpack(Bytes packed, std::size_t members);

}  // namespace mcastcoll::wire
