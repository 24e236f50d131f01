#include "wire/packet.h"

#include <isa-l/crc.h>

#include <cassert>
#include <cstring>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

// CRC-32C (Castagnoli, RFC 3720 section 12.1) of header and payload, the CRC field itself taken as zero.
std::uint32_t checksum(const HeaderBytes& header, Bytes payload) {
    assert(std::to_integer<int>(header[kCrcOffset]) == 0);
    // isa-l wants mutable pointers and int lengths, but writes nothing; payloads are below 2 GiB by the
    // length check.
    auto crc = [](const std::byte* data, std::size_t bytes, std::uint32_t seed) {
        auto* at = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(data));
        return crc32_iscsi(at, static_cast<int>(bytes), seed);
    };
    std::uint32_t value = crc(header.data(), header.size(), UINT32_MAX);
    if (!payload.empty()) value = crc(payload.data(), payload.size(), value);
    return ~value;
}

bool known(std::uint8_t kind) {
    auto between = [kind](Kind first, Kind last) {
        return kind >= static_cast<std::uint8_t>(first) && kind <= static_cast<std::uint8_t>(last);
    };
    return between(Kind::fragment, Kind::floor_cast) || between(Kind::data, Kind::appeal) ||
           between(Kind::nack, Kind::credit) || between(Kind::piece, Kind::block_grant);
}

}  // namespace

std::string_view name_of(Refusal refusal) {
    switch (refusal) {
        case Refusal::none:
            return "none";
        case Refusal::truncated:
            return "truncated";
        case Refusal::magic:
            return "magic";
        case Refusal::version:
            return "version";
        case Refusal::kind:
            return "kind";
        case Refusal::length:
            return "length";
        case Refusal::checksum:
            return "checksum";
    }
    return "unknown";
}

void encode(const Header& header, Bytes payload, HeaderBytes& out) {
    assert(header.payload_bytes == payload.size());
    std::byte* at = out.data();
    put(at + kMagicOffset, kMagic);
    put(at + kVersionOffset, kVersion);
    put(at + kKindOffset, static_cast<std::uint8_t>(header.kind));
    put(at + kCrcOffset, std::uint32_t{0});
    put(at + kGroupKeyOffset, static_cast<std::uint64_t>(header.key));
    put(at + kEpochOffset, static_cast<std::uint32_t>(header.epoch));
    put(at + kSenderOffset, index_of(header.sender));
    put(at + kOperationOffset, number_of(header.operation));
    put(at + kFragmentOffset, index_of(header.fragment));
    put(at + kPayloadOffset, header.payload_bytes);
    put(at + kTotalOffset, header.total);
    put(at + kCrcOffset, checksum(out, payload));
}

Decoded decode(Bytes packet) {
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
    if (payload_bytes != packet.size() - kHeaderBytes || payload_bytes > INT32_MAX)
        return refuse(Refusal::length);
    result.payload = packet.subspan(kHeaderBytes);

    HeaderBytes copy;
    std::memcpy(copy.data(), at, kHeaderBytes);
    put(copy.data() + kCrcOffset, std::uint32_t{0});
    if (checksum(copy, result.payload) != get<std::uint32_t>(at + kCrcOffset))
        return refuse(Refusal::checksum);

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
