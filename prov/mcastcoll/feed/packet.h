// The packets of reliable multicast messages, big-endian, 48 bytes before the body:
//
//      0  u32  0x4d434631 ("MCF1")
//      4  u8   kind          5  u8  flags        6  u16  0
//      8  u64  group: hash of its address and port
//     16  u64  from: the member that sends it, drawn at random when it joined
//     24  u64  to: the member it is for, 0 for all
//     32  u64  number   data: its own; join, beat: the next one; welcome: where the other is to begin;
//                       report: all below have been handed to the application
//     40  u64  oldest   data, beat: the oldest that can still be had; report: where the bitmap begins
//
// A report's body is a bitmap of numbers that are missing, the lowest bit of the first byte first.
#pragma once

#include <array>

#include "wire/result.h"
#include "wire/types.h"

namespace mcastcoll::feed {

enum class MemberId : std::uint64_t {};
inline constexpr MemberId kEverybody{0};

enum class Kind : std::uint8_t { data = 1, join, welcome, report, beat, leave, expelled };

// Of data: pieces of messages. Of join and welcome: what the member does. Of a beat: report at once.
inline constexpr std::uint8_t kFirst = 1, kLast = 2;
inline constexpr std::uint8_t kSends = 1, kReceives = 2;
inline constexpr std::uint8_t kReport = 1;

inline constexpr std::size_t kHeaderBytes = 48;
inline constexpr std::size_t kBitmapBytes = 64;

struct Header {
    Kind kind = Kind::data;
    std::uint8_t flags = 0;
    std::uint64_t group = 0;
    MemberId from{}, to{};
    std::uint64_t number = 0, oldest = 0;
};

std::array<std::byte, kHeaderBytes> encode(const Header& header);
Result<Header> decode(Bytes packet);

}  // namespace mcastcoll::feed
