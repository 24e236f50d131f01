// What the fuzzers share: numbers and bytes out of the input, and a check that sanitizers do not make.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "wire/packet.h"

namespace mcastcoll::fuzz {

inline void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

inline Bytes bytes_of(const std::uint8_t* data, std::size_t size) {
    return std::as_bytes(std::span(data, size));
}

inline std::vector<std::byte> take_bytes(FuzzedDataProvider& in, std::size_t most) {
    return in.ConsumeBytes<std::byte>(in.ConsumeIntegralInRange<std::size_t>(0, most));
}

// Mostly small numbers, now and then any.
inline std::uint64_t take_number(FuzzedDataProvider& in) {
    const auto small = in.ConsumeIntegral<std::uint8_t>();
    return small < 224 ? small : in.ConsumeIntegral<std::uint64_t>();
}

// A packet of this group that a member may send, whatever it says.
inline std::vector<std::byte> take_packet(FuzzedDataProvider& in, GroupKey key, Epoch epoch,
                                          std::uint32_t members, std::size_t most) {
    wire::Header header{.kind = static_cast<wire::Kind>(in.ConsumeIntegralInRange<unsigned>(1, 51)),
                        .key = key,
                        .epoch = epoch,
                        .sender = rank_of(in.ConsumeIntegralInRange<std::uint32_t>(0, members)),
                        .operation = operation_of(take_number(in)),
                        .fragment = fragment_of(static_cast<std::uint32_t>(take_number(in)))};
    header.total = take_number(in);
    const auto payload = take_bytes(in, most);
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    wire::HeaderBytes head;
    wire::encode(header, payload, head);
    std::vector<std::byte> packet(head.begin(), head.end());
    packet.insert(packet.end(), payload.begin(), payload.end());
    return packet;
}

}  // namespace mcastcoll::fuzz
