// Compressed table of the members' addresses in a welcome. Members differ in a few bytes of each address, so
// the table is stored by columns: of each address all lengths, all first bytes, all second bytes and so on,
// with the members in an order that keeps hosts together if that is shorter. zstd then compresses equal and
// repeating values. FORMAT.md, "The table of peers".
#pragma once

#include <optional>

#include "wire/peer.h"

namespace mcastcoll::wire {

// Largest size for one member: range (1 byte), a rank of the order (4), sequence (4), and four strings, each
// with its length (1).
inline constexpr std::size_t kMaxUnpackedBytes = 1 + 4 + 4 + 4 * (1 + kMaxAddressBytes);

// All arguments are by rank and of equal length.
ByteString pack(const std::vector<Peer>& peers, const std::vector<std::uint8_t>& range_of,
                const std::vector<std::uint32_t>& sequences);

struct PeerTable {
    std::vector<Peer> peers;
    std::vector<std::uint8_t> range_of;
    std::vector<std::uint32_t> sequences;
};
// Returns the table, or nothing unless it is well-formed and of exactly this many members. Allocates at most
// kMaxUnpackedBytes per member, for any input.
std::optional<PeerTable> unpack(Bytes packed, std::size_t members);

}  // namespace mcastcoll::wire
