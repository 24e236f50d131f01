// The packets of reliable multicast messages, big-endian, 64 bytes before the body:
//
//      0  u32  0x4d434633 ("MCF3"; the last character is the version, and other versions are not heard)
//      4  u8   kind          5  u8  flags
//      6  u16  size     data: the window of its sender now, each eighth of which is to be reported; join,
//                       welcome: the most bytes of data in a packet of this member; else 0
//      8  u64  group: hash of its address and port
//     16  u64  from: the member that sends it, drawn at random when it joined
//     24  u64  to: the member it is for, 0 for all
//     32  u64  number   data: its own; join, beat: the next one; welcome: where the other is to begin;
//                       report: all below have been handed to the application
//     40  u64  oldest   data, beat: the oldest that could still be had when it was made; report: where the
//                       bitmap begins; join, welcome: how many packets wait in this member's receive buffer
//                       at most
//     48  u64  serial   of data: its number, and the highest bit; else the sender counts them, from 1
//     56  u64  tag: the proof that a member has made it (proof.h), 0 in groups without a key
//
// Data is pieces of messages, one after the other, each behind a u16: bit 15, a message begins here; bit 14,
// it ends here; its bytes below. All packets of a row but the last have as many bytes, so that the kernel can
// cut the row from one buffer: zeros behind the last piece are none. A report's body is a bitmap of numbers
// that are missing, the lowest bit of the first byte first. A welcome's is a u64: the serial of the join or
// welcome that it answers.
#pragma once

#include <array>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::feed {

enum class MemberId : std::uint64_t {};
inline constexpr MemberId kEverybody{0};

// Where packets come from and go to. Only the host understands it.
struct Place {
    std::array<std::byte, 28> bytes{};
    std::size_t size = 0;
    bool operator==(const Place&) const = default;
};

enum class Kind : std::uint8_t { data = 1, join, welcome, report, beat, leave, expelled };

// Of a piece.
inline constexpr std::uint8_t kFirst = 2, kLast = 1;
// Of join and welcome: what the member does.
inline constexpr std::uint8_t kSends = 1, kReceives = 2;
// Of welcome: its sender has not heard yet that the other is there.
inline constexpr std::uint8_t kAnswer = 4;
// Of a beat: report at once.
inline constexpr std::uint8_t kReport = 1;

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kTagOffset = 56;
inline constexpr std::size_t kEchoBytes = 8;
inline constexpr std::size_t kBitmapBytes = 256;
inline constexpr std::size_t kPieceHeader = 2;
// The most bytes of data in a packet.
inline constexpr std::size_t kMostPayload = 8192;

struct Header {
    Kind kind = Kind::data;
    std::uint8_t flags = 0;
    std::uint16_t size = 0;
    std::uint64_t group = 0;
    MemberId from{}, to{};
    std::uint64_t number = 0, oldest = 0, serial = 0;
};

// Without a tag.
std::array<std::byte, kHeaderBytes> encode(const Header& header);
Result<Header> decode(Bytes packet);

struct Piece {
    std::uint8_t flags = 0;
    Bytes bytes;
};
// Writes a piece's header.
void put_piece(std::byte* at, std::uint8_t flags, std::size_t bytes);
// The piece at `offset` of a packet's body; false behind the last one.
bool read_piece(Bytes body, std::size_t offset, Piece& piece);

}  // namespace mcastcoll::feed
