// The header of multicast datagrams and point-to-point messages, as specified in FORMAT.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::wire {

inline constexpr std::uint16_t kMagic = 0x4d43;  // "MC"
inline constexpr std::uint8_t kVersion = 3;

enum class Kind : std::uint8_t {
    fragment = 1,            // multicast: one fragment of a broadcast
    release = 2,             // multicast: the end of a barrier, or a fragment of a reduction's result
    probe = 3,               // multicast: tests whether members receive the sender
    relay = 4,               // multicast: a fragment or release, relayed to the sender's own range
    watermark_cast = 5,      // multicast: all members have finished all operations below
    parity = 6,              // multicast: a parity row of a block of fragments
    data = 16,               // message: consecutive fragments of a broadcast or a barrier's release
    nak = 17,                // message: bitmap of the fragments that the sender lacks
    done = 18,               // message: the sender has the whole broadcast
    report = 19,             // message: length of the prefix that the sender's subtree has, in fragments
    gather = 20,             // message: the sender's subtree has entered, and its short vector
    watermark_up = 21,       // message: the sender's subtree has finished all operations below
    watermark_down = 22,     // message: all members have finished all operations below
    leave_up = 23,           // message: the sender's subtree has closed the group
    leave_down = 24,         // message: all members have closed the group
    fail = 25,               // message: the group has failed
    ready = 26,              // message: the sender's subtree listens to the group's address
    go = 27,                 // message: all members listen, start to probe
    vote = 28,               // message: speakers that the members of the sender's subtree did not receive
    reachability_map = 29,   // message: the deaf and the mute members
    ping = 30,               // message: request for a pong
    pong = 31,               // message: the answer, with the ping's time stamp
    election_request = 32,   // message: the reachability map may be wrong, hold an election
    root_nak = 40,           // message: bitmap of the fragments that the root is to multicast again
    watermark_request = 41,  // message: request for a higher watermark
    entered = 42,            // message: the sender has posted the operation whose root is the receiver
    contribution = 43,       // message: consecutive pieces of a vector, combined over the sender's subtree
    credit = 44,             // message: pieces of a vector below this number may be sent
    piece = 48,              // message between sites: a part of an operation's message or vector
    grant = 49,              // message between sites: pieces up to here may be sent
    block = 50,              // message between any two members: a piece of an exchange of blocks
    block_grant = 51,        // message between any two members: pieces up to here may be sent
};

constexpr bool is_multicast(Kind kind) {
    return kind < Kind::data;
}

// Offsets and sizes in bytes. Every integer is big-endian.
inline constexpr std::size_t kMagicOffset = 0;
inline constexpr std::size_t kVersionOffset = 2;
inline constexpr std::size_t kKindOffset = 3;
inline constexpr std::size_t kCrcOffset = 4;
inline constexpr std::size_t kPositionOffset = kCrcOffset;  // in a message with a key
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

// Flag in the total field of a fragment, relay or data: the root does not have the whole message yet, so
// silence may mean that the root waits for data.
inline constexpr std::uint64_t kPartialFlag = std::uint64_t{1} << 63;
// Flag in the total field of a fragment, release or relay: the fragment was multicast before, so a receiver
// that gets only this multicast has lost the first.
inline constexpr std::uint64_t kRepeatFlag = std::uint64_t{1} << 62;
// Flag in the total field of a gather, contribution or credit: the result is for rank 0 only.
inline constexpr std::uint64_t kReduceFlag = std::uint64_t{1} << 63;
// A message has fewer than 2^31 fragments, so no length reaches the flags. Gathers, contributions and credits
// are never accepted from datagrams.
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
    std::uint64_t total = 0;  // length of the whole broadcast in bytes, or another number (FORMAT.md)
};

// Reason for refusing a packet.
enum class Refusal : std::uint8_t { none, truncated, magic, version, kind, length, checksum };

// Continues a CRC-32C over more bytes. The initial value has all bits set, and the final value is inverted.
std::uint32_t add_to_crc(std::uint32_t value, Bytes bytes);

// How a packet's integrity is checked; none: by an authentication tag instead (protection.h).
enum class Checksum : bool { none, crc32c };

// Writes the header without number and tag; the checksum covers header and payload. header.payload_bytes must
// be payload.size().
void encode(const Header& header, Bytes payload, HeaderBytes& out, Checksum checksum = Checksum::crc32c);

struct Decoded {
    Refusal refusal = Refusal::none;
    Header header;
    Bytes payload;
};

// Checks the CRC, if `checksum` says that packets have one. Requires at least kHeaderBytes and a known kind.
bool has_right_checksum(Bytes packet, Checksum checksum);
// Checks all fields that do not depend on the group. The payload is a view into the packet.
Decoded decode(Bytes packet, Checksum checksum = Checksum::crc32c);

// These functions return a header field of a packet of at least kHeaderBytes, for demultiplexing. The packet
// is not validated.
GroupKey peek_key(Bytes packet);
Kind peek_kind(Bytes packet);
Rank peek_sender(Bytes packet);

}  // namespace mcastcoll::wire
