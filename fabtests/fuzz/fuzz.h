// Shared by the fuzzers: numbers and bytes from the input, and a check that sanitizers do not make.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/collective.h"
#include "input.h"
#include "reduce/slices.h"
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

inline std::vector<std::byte> take_bytes(Input& in, std::size_t max) {
    return in.bytes(max);
}

// Returns mostly small numbers, and now and then any number.
inline std::uint64_t take_number(Input& in) {
    const auto small = in.any<std::uint8_t>();
    return small < 224 ? small : in.any<std::uint64_t>();
}

// Returns a packet of this group as a member may send it, with arbitrary contents.
inline std::vector<std::byte> take_packet(Input& in, GroupKey key, Epoch epoch, std::uint32_t members,
                                          std::size_t max) {
    wire::Header header{.kind = static_cast<wire::Kind>(in.between<unsigned>(1, 51)),
                        .key = key,
                        .epoch = epoch,
                        .sender = rank_of(in.between<std::uint32_t>(0, members)),
                        .operation = operation_of(take_number(in)),
                        .fragment = fragment_of(static_cast<std::uint32_t>(take_number(in)))};
    header.total = take_number(in);
    const auto payload = take_bytes(in, max);
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    wire::HeaderBytes head;
    wire::encode(header, payload, head);
    std::vector<std::byte> packet(head.begin(), head.end());
    packet.insert(packet.end(), payload.begin(), payload.end());
    return packet;
}

// The operator of all reductions in fuzzers, for aligned elements.
inline void combine_words(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const std::uint64_t*>(one),
               *second = static_cast<const std::uint64_t*>(other);
    for (std::size_t i = 0; i < elements; ++i) static_cast<std::uint64_t*>(out)[i] = first[i] ^ second[i];
}

// A member's call, with exactly the necessary memory, so that sanitizers detect accesses beyond it.
struct Call {
    Collective request;
    std::vector<std::byte> buffer, input;

    // Lays out the call's buffers. In a reduction, `bytes` is rounded to a multiple of the element size.
    void lay_out(CollectiveKind kind, std::uint32_t root, std::size_t bytes, std::uint32_t self,
                 std::uint32_t members, bool in_place) {
        using Kind = CollectiveKind;
        if (kind == Kind::barrier) bytes = 0;
        if (is_reduction(kind)) bytes = bytes / 8 * 8;
        const bool is_root = root == self;
        std::size_t result = bytes, own = kind == Kind::broadcast ? 0 : bytes;
        if (kind == Kind::alltoall) own = result = members * bytes;
        if (kind == Kind::allgather || (kind == Kind::gather && is_root)) result = members * bytes;
        if (kind == Kind::scatter) own = is_root ? members * bytes : 0;
        if (kind == Kind::reduce_scatter) result = reduce::slice_of(self, members, bytes / 8, 8).bytes;
        if ((kind == Kind::reduce || kind == Kind::gather) && !is_root) result = 0;
        buffer.resize(result);
        input.resize(own);
        request = {.kind = kind,
                   .root = rank_of(root),
                   .buffer = buffer.data(),
                   .bytes = bytes,
                   .input = input.data(),
                   .combiner = {combine_words, 8}};
        const bool same =
            kind == Kind::allreduce || kind == Kind::alltoall || (kind == Kind::reduce && is_root);
        if (in_place && same) request.input = request.buffer;
    }
};

}  // namespace mcastcoll::fuzz
