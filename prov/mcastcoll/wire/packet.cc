#include "wire/packet.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

// CRC-32C (Castagnoli, RFC 3720 section 12.1) of header and payload, with the CRC field taken as zero. Up to
// the end of that field only the kind varies, so the register at that point comes from a table. The rest of a
// packet is contiguous and takes a single call.
constexpr std::size_t kSummedFrom = kCrcOffset + sizeof(std::uint32_t);
constexpr std::size_t kKinds = 64;

constexpr std::uint32_t crc_after(std::array<std::uint8_t, kSummedFrom> bytes) {
    constexpr std::uint32_t kReflectedPolynomial = 0x82f63b78;
    std::uint32_t value = UINT32_MAX;
    for (const std::uint8_t byte : bytes) {
        value ^= byte;
        for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kReflectedPolynomial : 0);
    }
    return value;
}

constexpr auto kSeeds = [] {
    std::array<std::uint32_t, kKinds> seeds{};
    for (std::size_t kind = 0; kind < kKinds; ++kind)
        seeds[kind] = crc_after({kMagic >> 8, kMagic & 0xff, kVersion, static_cast<std::uint8_t>(kind)});
    return seeds;
}();

static_assert(static_cast<std::size_t>(Kind::block_grant) < kKinds);
bool known(std::uint8_t kind) {
    auto between = [kind](Kind first, Kind last) {
        return kind >= static_cast<std::uint8_t>(first) && kind <= static_cast<std::uint8_t>(last);
    };
    return between(Kind::fragment, Kind::parity) || between(Kind::data, Kind::election_request) ||
           between(Kind::root_nak, Kind::credit) || between(Kind::piece, Kind::block_grant);
}

}  // namespace

std::uint32_t add_to_crc(std::uint32_t value, Bytes bytes) {
    // isa-l's signature has a mutable pointer and an int length, but isa-l writes nothing; the length check
    // limits payloads to below 2 GiB.
    auto* at = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    return crc32_iscsi(at, static_cast<int>(bytes.size()), value);
}

void encode(const Header& header, Bytes payload, HeaderBytes& out, Checksum checksum) {
    assert(header.payload_bytes == payload.size());
    std::byte* at = out.data();
    put(at + kMagicOffset, kMagic);
    put(at + kVersionOffset, kVersion);
    put(at + kKindOffset, static_cast<std::uint8_t>(header.kind));
    put(at + kGroupKeyOffset, static_cast<std::uint64_t>(header.key));
    put(at + kEpochOffset, static_cast<std::uint32_t>(header.epoch));
    put(at + kSenderOffset, index_of(header.sender));
    put(at + kOperationOffset, number_of(header.operation));
    put(at + kFragmentOffset, index_of(header.fragment));
    put(at + kPayloadOffset, header.payload_bytes);
    put(at + kTotalOffset, header.total);
    std::fill(out.begin() + kNumberOffset, out.end(), std::byte{});
    if (checksum == Checksum::none) return put(at + kCrcOffset, std::uint32_t{0});
    std::uint32_t crc =
        add_to_crc(kSeeds[static_cast<std::uint8_t>(header.kind)], Bytes(out).subspan(kSummedFrom));
    if (!payload.empty()) crc = add_to_crc(crc, payload);
    put(at + kCrcOffset, ~crc);
}

bool has_right_checksum(Bytes packet, Checksum checksum) {
    if (checksum == Checksum::none) return true;
    const std::byte* at = packet.data();
    const std::uint32_t seed = kSeeds[get<std::uint8_t>(at + kKindOffset)];
    return ~add_to_crc(seed, packet.subspan(kSummedFrom)) == get<std::uint32_t>(at + kCrcOffset);
}

Decoded decode(Bytes packet, Checksum checksum) {
    Decoded result;
    auto refuse = [&](Refusal why) {
        result.refusal = why;
        return result;
    };
    if (packet.size() < kHeaderBytes) return refuse(Refusal::truncated);
    const std::byte* at = packet.data();
    if (get<std::uint16_t>(at + kMagicOffset) != kMagic) return refuse(Refusal::magic);
    if (get<std::uint8_t>(at + kVersionOffset) != kVersion) return refuse(Refusal::version);
    const auto kind = get<std::uint8_t>(at + kKindOffset);
    if (!known(kind)) return refuse(Refusal::kind);
    const auto payload_bytes = get<std::uint32_t>(at + kPayloadOffset);
    if (payload_bytes != packet.size() - kHeaderBytes || payload_bytes > INT32_MAX - kHeaderBytes)
        return refuse(Refusal::length);
    result.payload = packet.subspan(kHeaderBytes);

    if (!has_right_checksum(packet, checksum)) return refuse(Refusal::checksum);

    result.header = {.kind = static_cast<Kind>(kind),
                     .key = peek_key(packet),
                     .epoch = static_cast<Epoch>(get<std::uint32_t>(at + kEpochOffset)),
                     .sender = peek_sender(packet),
                     .operation = operation_of(get<std::uint64_t>(at + kOperationOffset)),
                     .fragment = fragment_of(get<std::uint32_t>(at + kFragmentOffset)),
                     .payload_bytes = payload_bytes,
                     .total = get<std::uint64_t>(at + kTotalOffset)};
    return result;
}

GroupKey peek_key(Bytes packet) {
    assert(packet.size() >= kHeaderBytes);
    return static_cast<GroupKey>(get<std::uint64_t>(packet.data() + kGroupKeyOffset));
}

Kind peek_kind(Bytes packet) {
    return static_cast<Kind>(get<std::uint8_t>(packet.data() + kKindOffset));
}

Rank peek_sender(Bytes packet) {
    assert(packet.size() >= kHeaderBytes);
    return static_cast<Rank>(get<std::uint32_t>(packet.data() + kSenderOffset));
}

}  // namespace mcastcoll::wire
