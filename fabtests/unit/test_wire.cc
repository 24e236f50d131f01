// The header on the wire: round trips, its exact bytes, and every way in which a packet can be refused.
#include <criterion/criterion.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "wire/bytes.h"
#include "wire/packet.h"

using namespace mcastcoll;
using wire::Header;
using wire::Kind;
using wire::Refusal;

namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
    std::vector<std::byte> result(text.size());
    if (!text.empty()) std::memcpy(result.data(), text.data(), text.size());
    return result;
}

std::vector<std::byte> packet_of(Header header, const std::vector<std::byte>& payload) {
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    wire::HeaderBytes out;
    wire::encode(header, payload, out);
    std::vector<std::byte> packet(out.size() + payload.size());
    std::copy(payload.begin(), payload.end(), std::copy(out.begin(), out.end(), packet.begin()));
    return packet;
}

const Header kSample{.kind = Kind::fragment,
                     .key = GroupKey{0x0123456789abcdef},
                     .epoch = Epoch{0x11223344},
                     .sender = Rank{5},
                     .operation = OperationId{0x0102030405060708},
                     .fragment = FragmentIndex{9},
                     .payload_bytes = 0,
                     .total = 0xfedcba9876543210};

// Corrects the checksum after a change, so that only the change can cause a refusal.
void sign(std::vector<std::byte>& packet) {
    wire::put(packet.data() + wire::kCrcOffset, std::uint32_t{0});
    const auto crc =
        ~crc32_iscsi(reinterpret_cast<unsigned char*>(packet.data()), static_cast<int>(packet.size()), ~0U);
    wire::put(packet.data() + wire::kCrcOffset, crc);
}

}  // namespace

TestSuite(wire, .timeout = 300);

Test(wire, library_computes_crc32c) {
    unsigned char digits[] = "123456789";
    cr_assert_eq(~crc32_iscsi(digits, 9, ~0U), 0xe3069283U, "RFC 3720's check value");
}

Test(wire, round_trip_of_every_kind_and_length) {
    for (unsigned kind = 0; kind < 256; ++kind) {
        const bool known =
            (kind >= 1 && kind <= 3) || kind == 5 || (kind >= 16 && kind <= 31) || (kind >= 40 && kind <= 42);
        if (!known) continue;
        for (std::size_t length : {0U, 1U, 7U, 1424U, 65000U}) {
            std::vector<std::byte> payload(length);
            for (std::size_t i = 0; i < length; ++i) payload[i] = static_cast<std::byte>(i * 31 + kind);
            Header header = kSample;
            header.kind = static_cast<Kind>(kind);
            const auto packet = packet_of(header, payload);
            cr_assert_eq(packet.size(), wire::kHeaderBytes + length);
            const auto decoded = wire::decode(packet);
            cr_assert(decoded.refusal == Refusal::none, "kind %u length %zu", kind, length);
            cr_assert(decoded.header.kind == header.kind);
            cr_assert(decoded.header.key == header.key);
            cr_assert(decoded.header.epoch == header.epoch);
            cr_assert(decoded.header.sender == header.sender);
            cr_assert(decoded.header.operation == header.operation);
            cr_assert(decoded.header.fragment == header.fragment);
            cr_assert_eq(decoded.header.payload_bytes, length);
            cr_assert_eq(decoded.header.total, header.total);
            cr_assert(
                std::equal(payload.begin(), payload.end(), decoded.payload.begin(), decoded.payload.end()));
            cr_assert(wire::peek_key(packet) == header.key);
            cr_assert(wire::peek_sender(packet) == header.sender);
        }
    }
}

Test(wire, golden_bytes) {
    const auto packet = packet_of(kSample, bytes_of("abc"));
    const unsigned char expected[] = {
        0x4d, 0x43, 0x03, 0x01, 0x92, 0xec, 0x93, 0x19,  // magic, version, kind, CRC-32C
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,  // group key
        0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x00, 0x05,  // epoch, sender
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,  // operation
        0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x03,  // fragment, payload bytes
        0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10,  // total
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // number, tag
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  //
        'a',  'b',  'c'};
    cr_assert_eq(packet.size(), sizeof expected);
    for (std::size_t i = 0; i < sizeof expected; ++i)
        cr_expect_eq(std::to_integer<unsigned>(packet[i]), expected[i], "byte %zu is %02x", i,
                     std::to_integer<unsigned>(packet[i]));
}

Test(wire, every_truncation_is_refused) {
    const auto packet = packet_of(kSample, bytes_of("twenty bytes of data"));
    for (std::size_t length = 0; length < packet.size(); ++length) {
        const auto decoded = wire::decode(Bytes(packet).first(length));
        cr_assert(decoded.refusal == (length < wire::kHeaderBytes ? Refusal::truncated : Refusal::length),
                  "length %zu: %d", length, static_cast<int>(decoded.refusal));
    }
    auto longer = packet;
    longer.push_back(std::byte{0});
    cr_assert(wire::decode(longer).refusal == Refusal::length);
}

Test(wire, every_single_bit_flip_is_refused) {
    const auto packet = packet_of(kSample, bytes_of("payload"));
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
        auto flipped = packet;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        cr_assert(wire::decode(flipped).refusal != Refusal::none, "bit %zu", bit);
    }
}

// The packets have a correct checksum, so that the tested reason applies; the first applicable reason is
// reported.
Test(wire, each_refusal_has_its_reason) {
    const auto good = packet_of(kSample, bytes_of("data"));
    auto refusal_with = [&](std::size_t offset, unsigned value) {
        auto packet = good;
        packet[offset] = static_cast<std::byte>(value);
        sign(packet);
        return wire::decode(packet).refusal;
    };
    cr_assert(refusal_with(wire::kMagicOffset, 0) == Refusal::magic);
    cr_assert(refusal_with(wire::kMagicOffset + 1, 'X') == Refusal::magic);
    cr_assert(refusal_with(wire::kVersionOffset, 0) == Refusal::version);
    cr_assert(refusal_with(wire::kVersionOffset, wire::kVersion + 1) == Refusal::version);
    for (unsigned kind : {0U, 7U, 15U, 33U, 39U, 45U, 47U, 52U, 255U})
        cr_assert(refusal_with(wire::kKindOffset, kind) == Refusal::kind, "kind %u", kind);
    for (unsigned kind : {1U, 6U, 16U, 32U, 40U, 42U, 43U, 44U, 50U, 51U})
        cr_assert(refusal_with(wire::kKindOffset, kind) == Refusal::none, "kind %u", kind);
    cr_assert(refusal_with(wire::kPayloadOffset + 3, 3) == Refusal::length);
    cr_assert(refusal_with(wire::kPayloadOffset + 3, 5) == Refusal::length);
    cr_assert(refusal_with(wire::kPayloadOffset, 0xff) == Refusal::length);
    cr_assert(refusal_with(wire::kTotalOffset, 1) == Refusal::none, "sign() does not sign");
    auto packet = good;
    packet.back() ^= std::byte{1};
    cr_assert(wire::decode(packet).refusal == Refusal::checksum);
    cr_assert(wire::decode({}).refusal == Refusal::truncated);
}

Test(wire, multicast_kinds) {
    for (Kind kind : {Kind::fragment, Kind::release, Kind::probe, Kind::relay})
        cr_assert(wire::is_multicast(kind));
    for (Kind kind : {Kind::data, Kind::nak, Kind::pong}) cr_assert(!wire::is_multicast(kind));
}

Test(wire, put_and_get_are_big_endian) {
    std::byte raw[8];
    wire::put(raw, std::uint64_t{0x8001020304050607});
    cr_assert_eq(std::to_integer<unsigned>(raw[0]), 0x80U);
    cr_assert_eq(std::to_integer<unsigned>(raw[7]), 0x07U);
    cr_assert_eq(wire::get<std::uint64_t>(raw), 0x8001020304050607U);
    cr_assert_eq(wire::get<std::uint32_t>(raw), 0x80010203U);
    cr_assert_eq(wire::get<std::uint16_t>(raw), 0x8001U);
    cr_assert_eq(wire::get<std::uint8_t>(raw), 0x80U);
}
