// The packets of reliable multicast messages, big-endian, 64 bytes before the body:
//
//      0  u32  0x4d434633 ("MCF3"; the last character is the version, and other versions are ignored)
//      4  u8   kind          5  u8  flags
//      6  u16  size     data: the sender's current window, of which each eighth is to be reported; join,
//                       welcome: the most bytes of data in a packet of this member; else 0
//      8  u64  group: hash of its address and port
//     16  u64  from: the sending member, drawn at random when it joined
//     24  u64  to: the receiving member, 0 for the group
//     32  u64  number   data: its own; join, beat: the next one; welcome: first packet for the other member;
//                       report: all below have been handed to the application
//     40  u64  oldest   data, beat: the oldest packet still available when it was made; report: first packet
//                       of the bitmap; join, welcome: packets that fit in this member's receive buffer
//     48  u64  serial   data: its number, with the highest bit set; else counted by the sender, from 1
//     56  u64  tag      authentication tag (proof.h), 0 in groups without a key
//
// Data is a sequence of pieces of messages, each after a u16: bit 15, a message begins here; bit 14, a
// message ends here; the other bits, the length of the piece in bytes. The packets of a row, except the last,
// have the same length, so that the kernel can cut the row from one buffer: zeros after the last piece are
// padding. The body of a report is a bitmap of missing packets, the lowest bit of the first byte first. The
// body of a welcome is a u64: the serial of the answered join or welcome.
#pragma once

#include <array>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::reliable {

enum class MemberId : std::uint64_t {};
inline constexpr MemberId kAllMembers{0};

// Address of a member. Only the host interprets it.
struct Place {
    std::array<std::byte, 28> bytes{};
    std::size_t size = 0;
    bool operator==(const Place&) const = default;
};

enum class Kind : std::uint8_t { data = 1, join, welcome, report, beat, leave, expelled };

// Flags of a piece: it begins (kFirst) or ends (kLast) a message.
inline constexpr std::uint8_t kFirst = 2, kLast = 1;
// Flags of a join or welcome: roles of its sender.
inline constexpr std::uint8_t kSends = 1, kReceives = 2;
// Flag of a welcome: requests an answer, because its sender has none from the receiver yet.
inline constexpr std::uint8_t kAnswer = 4;
// Flag of a beat: receivers are to report at once.
inline constexpr std::uint8_t kReport = 1;

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kTagOffset = 56;
inline constexpr std::size_t kEchoBytes = 8;
inline constexpr std::size_t kBitmapBytes = 256;
inline constexpr std::size_t kPieceHeader = 2;
// Most bytes of data in a packet.
inline constexpr std::size_t kMaxPayload = 8192;

struct Header {
    Kind kind = Kind::data;
    std::uint8_t flags = 0;
    std::uint16_t size = 0;
    std::uint64_t group = 0;
    MemberId from{}, to{};
    std::uint64_t number = 0, oldest = 0, serial = 0;
};

// The tag of the encoded header is 0.
std::array<std::byte, kHeaderBytes> encode(const Header& header);
Result<Header> decode(Bytes packet);

struct Piece {
    std::uint8_t flags = 0;
    Bytes bytes;
};
// Writes a piece's header.
void put_piece(std::byte* at, std::uint8_t flags, std::size_t bytes);
// Reads the piece at `offset` of a packet's body; false after the last one.
bool read_piece(Bytes body, std::size_t offset, Piece& piece);

}  // namespace mcastcoll::reliable
