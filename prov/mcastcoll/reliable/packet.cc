#include "reliable/packet.h"

#include <cerrno>

#include "wire/bytes.h"

namespace mcastcoll::reliable {
namespace {

constexpr unsigned kLengthBits = 14;
static_assert(kMaxPayload < 1U << kLengthBits);
constexpr std::uint32_t kMagic = 0x4d434633;

}  // namespace

std::array<std::byte, kHeaderBytes> encode(const Header& header) {
    std::array<std::byte, kHeaderBytes> out{};
    wire::put(&out[0], kMagic);
    wire::put(&out[4], static_cast<std::uint8_t>(header.kind));
    wire::put(&out[5], header.flags);
    wire::put(&out[6], header.size);
    wire::put(&out[8], header.group);
    wire::put(&out[16], static_cast<std::uint64_t>(header.from));
    wire::put(&out[24], static_cast<std::uint64_t>(header.to));
    wire::put(&out[32], header.number);
    wire::put(&out[40], header.oldest);
    wire::put(&out[48], header.serial);
    return out;
}

Result<Header> decode(Bytes packet) {
    if (packet.size() < kHeaderBytes || wire::get<std::uint32_t>(packet.data()) != kMagic)
        return Error{EBADMSG, "not a packet of reliable multicast messages"};
    const auto kind = wire::get<std::uint8_t>(&packet[4]);
    if (kind < static_cast<std::uint8_t>(Kind::data) || kind > static_cast<std::uint8_t>(Kind::expelled))
        return Error{EBADMSG, "a packet of an unknown kind"};
    Header header;
    header.kind = static_cast<Kind>(kind);
    header.flags = wire::get<std::uint8_t>(&packet[5]);
    header.size = wire::get<std::uint16_t>(&packet[6]);
    header.group = wire::get<std::uint64_t>(&packet[8]);
    header.from = static_cast<MemberId>(wire::get<std::uint64_t>(&packet[16]));
    header.to = static_cast<MemberId>(wire::get<std::uint64_t>(&packet[24]));
    header.number = wire::get<std::uint64_t>(&packet[32]);
    header.oldest = wire::get<std::uint64_t>(&packet[40]);
    header.serial = wire::get<std::uint64_t>(&packet[48]);
    if (header.from == kAllMembers) return Error{EBADMSG, "a packet without a sender"};
    return header;
}

void put_piece(std::byte* at, std::uint8_t flags, std::size_t bytes) {
    wire::put(at, static_cast<std::uint16_t>(std::size_t{flags} << kLengthBits | bytes));
}

bool read_piece(Bytes body, std::size_t offset, Piece& piece) {
    if (offset + kPieceHeader > body.size()) return false;
    const auto head = wire::get<std::uint16_t>(&body[offset]);
    const std::size_t length = head & ((1U << kLengthBits) - 1);
    if (head == 0 || offset + kPieceHeader + length > body.size()) return false;
    piece = {static_cast<std::uint8_t>(head >> kLengthBits), body.subspan(offset + kPieceHeader, length)};
    return true;
}

}  // namespace mcastcoll::reliable
