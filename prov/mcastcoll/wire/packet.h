// The one header of everything that travels: multicast datagrams and point-to-point messages.
// FORMAT.md beside this file is the prose specification; this file is its executable twin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::wire {

inline constexpr std::uint16_t kMagic = 0x4d43;  // "MC"
inline constexpr std::uint8_t kVersion = 3;

enum class Kind : std::uint8_t {
    fragment = 1,         // multicast: one fragment of a broadcast
    release = 2,          // multicast: the end of a barrier, or a fragment of a reduction's result
    probe = 3,            // multicast: can you hear me?
    relay = 4,            // multicast: a fragment or release, onward to the sender's own range
    watermark_cast = 5,   // multicast: everybody has finished all operations below
    parity = 6,           // multicast: a row of parity of a block of fragments
    data = 16,            // message: consecutive fragments of a broadcast or a barrier's release
    ask = 17,             // message: bitmap of the fragments the sender lacks
    done = 18,            // message: the sender has the whole broadcast
    report = 19,          // message: how many leading fragments the sender's subtree has
    gather = 20,          // message: the sender's subtree has entered, and its short vector
    watermark_up = 21,    // message: the sender's subtree has finished all operations below
    watermark_down = 22,  // message: everybody has finished all operations below
    leave_up = 23,        // message: the sender's subtree has closed the group
    leave_down = 24,      // message: everybody has closed the group
    fail = 25,            // message: the group has failed
    ready = 26,           // message: the sender's subtree listens to the group's address
    go = 27,              // message: everybody listens, start to probe
    vote = 28,            // message: whom the members of the sender's subtree did not hear
    verdict = 29,         // message: the deaf and the mute
    ping = 30,            // message: answer me
    pong = 31,            // message: the answer, with the question's time stamp
    elect = 32,           // message: the multicast is not as the verdict says, hold an election
    nack = 40,            // message: bitmap of the fragments that the root is to multicast again
    watermark_ask = 41,   // message: has everybody finished more than all below?
    entered = 42,         // message: the sender has posted the operation that the receiver is the root of
    contribution = 43,    // message: consecutive pieces of a vector, combined over the sender's subtree
    credit = 44,          // message: so many pieces of a vector may be sent
    piece = 48,           // message between sites: some bytes of an operation's message or vector
    grant = 49,           // message between sites: pieces up to here may be sent
    block = 50,           // message between any two members: a piece of an exchange of blocks
    block_grant = 51,     // message between any two members: pieces up to here may be sent
};

constexpr bool is_multicast(Kind kind) {
    return kind < Kind::data;
}

// Offsets and sizes in bytes. Every integer is big-endian.
inline constexpr std::size_t kMagicOffset = 0;
inline constexpr std::size_t kVersionOffset = 2;
inline constexpr std::size_t kKindOffset = 3;
inline constexpr std::size_t kCrcOffset = 4;
inline constexpr std::size_t kPlaceOffset = kCrcOffset;  // with a key
inline constexpr std::size_t kGroupKeyOffset = 8;
inline constexpr std::size_t kEpochOffset = 16;
inline constexpr std::size_t kSenderOffset = 20;
inline constexpr std::size_t kOperationOffset = 24;
inline constexpr std::size_t kFragmentOffset = 32;
inline constexpr std::size_t kPayloadOffset = 36;
inline constexpr std::size_t kTotalOffset = 40;
inline constexpr std::size_t kNumberOffset = 48;
inline constexpr std::size_t kTagOffset = 56;
inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kHeaderBytes = 72;

static_assert(kCrcOffset == kKindOffset + 1);
static_assert(kGroupKeyOffset == kCrcOffset + sizeof(std::uint32_t));
static_assert(kEpochOffset == kGroupKeyOffset + sizeof(GroupKey));
static_assert(kSenderOffset == kEpochOffset + sizeof(Epoch));
static_assert(kOperationOffset == kSenderOffset + sizeof(Rank));
static_assert(kFragmentOffset == kOperationOffset + sizeof(OperationId));
static_assert(kPayloadOffset == kFragmentOffset + sizeof(FragmentIndex));
static_assert(kTotalOffset == kPayloadOffset + sizeof(std::uint32_t));
static_assert(kNumberOffset == kTotalOffset + sizeof(std::uint64_t));
static_assert(kTagOffset == kNumberOffset + sizeof(std::uint64_t));
static_assert(kHeaderBytes == kTagOffset + kTagBytes);

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

// In the total of a fragment, relay or data: the root does not have the whole message yet, so silence may be
// its waiting for more.
inline constexpr std::uint64_t kPartialFlag = std::uint64_t{1} << 63;
// In the total of a fragment, release or relay: it was multicast before, so that a receiver which has it by
// this one only has lost the first.
inline constexpr std::uint64_t kRepeatFlag = std::uint64_t{1} << 62;
// In the total of a gather, contribution or credit: the result is for rank 0 only.
inline constexpr std::uint64_t kReduceFlag = std::uint64_t{1} << 63;
// A message has fewer than 2^31 fragments, so no length reaches the flags; what goes up the gather tree is
// never taken from a datagram.
static_assert(std::uint64_t{UINT32_MAX / 2} * (UINT32_MAX / 2) < kRepeatFlag && kReduceFlag == kPartialFlag);
static_assert(!is_multicast(Kind::gather) && !is_multicast(Kind::contribution) &&
              !is_multicast(Kind::credit));

struct Header {
    Kind kind = Kind::fragment;
    GroupKey key{};
    Epoch epoch{};
    Rank sender{};
    OperationId operation{};
    FragmentIndex fragment{};
    std::uint32_t payload_bytes = 0;
    std::uint64_t total = 0;  // bytes of the whole broadcast, or another number (FORMAT.md)
};

// Why a packet was not taken.
enum class Refusal : std::uint8_t { none, truncated, magic, version, kind, length, checksum };

// CRC-32C over more bytes. It begins with all ones, and what it ends with is inverted.
std::uint32_t add_to_crc(std::uint32_t value, Bytes bytes);

// What a packet is known to be whole by. Nothing: a tag stands in for it (protection.h).
enum class Checksum : bool { none, crc32c };

// Writes the header, without a number and a tag; the checksum is of header and payload. header.payload_bytes
// must be payload.size().
void encode(const Header& header, Bytes payload, HeaderBytes& out, Checksum checksum = Checksum::crc32c);

struct Decoded {
    Refusal refusal = Refusal::none;
    Header header;
    Bytes payload;
};

// Of a packet of at least kHeaderBytes whose kind is known.
bool has_right_checksum(Bytes packet, Checksum checksum);
// Checks everything that can be checked without knowing the group. The payload is a view into the packet.
Decoded decode(Bytes packet, Checksum checksum = Checksum::crc32c);

// Group key, kind and sender as written in a packet of at least kHeaderBytes, not validated: enough for
// demultiplexing.
GroupKey peek_key(Bytes packet);
Kind peek_kind(Bytes packet);
Rank peek_sender(Bytes packet);

}  // namespace mcastcoll::wire
