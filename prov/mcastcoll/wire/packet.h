// The one header of everything that travels: multicast datagrams and point-to-point messages.
// FORMAT.md beside this file is the prose specification; this file is its executable twin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "wire/types.h"

namespace mcastcoll::wire {

inline constexpr std::uint16_t kMagic = 0x4d43;  // "MC"
inline constexpr std::uint8_t kVersion = 1;

enum class Kind : std::uint8_t {
    fragment = 1,     // multicast: one fragment of a broadcast
    release = 2,      // multicast: the end of a barrier
    probe = 3,        // multicast: can you hear me?
    data = 16,        // message: consecutive fragments of a broadcast or a barrier's release
    ask = 17,         // message: bitmap of the fragments the sender lacks
    done = 18,        // message: the sender has the whole broadcast
    report = 19,      // message: how many leading fragments the sender's subtree has
    gather = 20,      // message: the sender's subtree has entered the barrier
    floor_up = 21,    // message: the sender's subtree has finished all operations below
    floor_down = 22,  // message: everybody has finished all operations below
    leave_up = 23,    // message: the sender's subtree has closed the group
    leave_down = 24,  // message: everybody has closed the group
    fail = 25,        // message: the group has failed
    ready = 26,       // message: the sender listens to the group's address
    go = 27,          // message: everybody listens, start to probe
    vote = 28,        // message: bitmap of the ranks the sender heard
    verdict = 29,     // message: bitmaps of the deaf and of the mute
    ping = 30,        // message: answer me
    pong = 31,        // message: the answer, with the question's time stamp
};

constexpr bool is_multicast(Kind kind) {
    return kind <= Kind::probe;
}

// Offsets and sizes in bytes. Every integer is big-endian.
inline constexpr std::size_t kMagicOffset = 0;
inline constexpr std::size_t kVersionOffset = 2;
inline constexpr std::size_t kKindOffset = 3;
inline constexpr std::size_t kCrcOffset = 4;
inline constexpr std::size_t kGroupKeyOffset = 8;
inline constexpr std::size_t kEpochOffset = 16;
inline constexpr std::size_t kSenderOffset = 20;
inline constexpr std::size_t kOperationOffset = 24;
inline constexpr std::size_t kFragmentOffset = 32;
inline constexpr std::size_t kPayloadOffset = 36;
inline constexpr std::size_t kTotalOffset = 40;
inline constexpr std::size_t kHeaderBytes = 48;

static_assert(kCrcOffset == kKindOffset + 1);
static_assert(kGroupKeyOffset == kCrcOffset + sizeof(std::uint32_t));
static_assert(kEpochOffset == kGroupKeyOffset + sizeof(GroupKey));
static_assert(kSenderOffset == kEpochOffset + sizeof(Epoch));
static_assert(kOperationOffset == kSenderOffset + sizeof(Rank));
static_assert(kFragmentOffset == kOperationOffset + sizeof(OperationId));
static_assert(kPayloadOffset == kFragmentOffset + sizeof(FragmentIndex));
static_assert(kTotalOffset == kPayloadOffset + sizeof(std::uint32_t));
static_assert(kHeaderBytes == kTotalOffset + sizeof(std::uint64_t));

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

struct Header {
    Kind kind = Kind::fragment;
    GroupKey key{};
    Epoch epoch{};
    Rank sender{};
    OperationId operation{};
    FragmentIndex fragment{};
    std::uint32_t payload_bytes = 0;
    std::uint64_t total =
        0;  // bytes of the whole broadcast; some kinds keep another number here, see FORMAT.md
};

// Why a packet was not taken.
enum class Refusal : std::uint8_t { none, truncated, magic, version, kind, length, checksum };
std::string_view name_of(Refusal refusal);

// Writes the header with the CRC-32C of header and payload. header.payload_bytes must be payload.size().
void encode(const Header& header, Bytes payload, HeaderBytes& out);

struct Decoded {
    Refusal refusal = Refusal::none;
    Header header;
    Bytes payload;
};

// Checks everything that can be checked without knowing the group. The payload is a view into the packet.
Decoded decode(Bytes packet);

// The group key and the sender as written in a packet of at least kHeaderBytes, not validated: enough for
// demultiplexing.
GroupKey peek_key(Bytes packet);
Rank peek_sender(Bytes packet);

}  // namespace mcastcoll::wire
