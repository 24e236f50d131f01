// A collective operation, as everybody knows it: from the call to the packet there is this one record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/types.h"

namespace mcastcoll {

// What each makes of `input` and `buffer`, with n members and blocks of `bytes`:
//   gather          bytes -> n blocks, at the root only      scatter     n blocks, of the root -> bytes
//   allgather       bytes -> n blocks                        alltoall    n blocks -> n blocks
//   reduce_scatter  a vector of `bytes` in all -> this member's slice_of() it (reduce/slices.h)
enum class CollectiveKind : std::uint8_t {
    broadcast,
    barrier,
    reduce,
    allreduce,
    allgather,
    gather,
    scatter,
    alltoall,
    reduce_scatter
};

inline constexpr std::size_t kCollectiveKinds = 9;

// Ends in NUL.
constexpr std::string_view name_of(CollectiveKind kind) {
    constexpr std::string_view kNames[kCollectiveKinds] = {"broadcast", "barrier",   "reduce",
                                                           "allreduce", "allgather", "gather",
                                                           "scatter",   "alltoall",  "reduce_scatter"};
    return kNames[static_cast<std::size_t>(kind) % kCollectiveKinds];
}

constexpr std::optional<CollectiveKind> kind_named(std::string_view name) {
    for (std::size_t i = 0; i < kCollectiveKinds; ++i)
        if (const auto kind = static_cast<CollectiveKind>(i); name_of(kind) == name) return kind;
    return std::nullopt;
}

// Each member has a block of its own, or one for each other.
constexpr bool moves_blocks(CollectiveKind kind) {
    return kind >= CollectiveKind::allgather;
}

constexpr bool is_reduction(CollectiveKind kind) {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::allreduce ||
           kind == CollectiveKind::reduce_scatter;
}

// How two vectors become one: the only thing that is known of a reduction's datatype and operator.
struct Combiner {
    // out[i] = one[i] op other[i] for so many elements. They are aligned for their type, and do not overlap
    // unless they are the same.
    void (*combine)(void* out, const void* one, const void* other, std::size_t elements) = nullptr;
    std::uint32_t element_bytes = 1;

    void operator()(void* out, const void* one, const void* other, std::size_t bytes) const {
        if (combine != nullptr) combine(out, one, other, bytes / element_bytes);
    }
    void operator()(void* inout, const void* in, std::size_t bytes) const {
        (*this)(inout, inout, in, bytes);
    }
};

struct Collective {
    CollectiveKind kind = CollectiveKind::broadcast;
    // Where there is one: a rank in the group, or on a level one of its members, by its place.
    Rank root{};
    // The caller's until the operation completes. A broadcast's message, otherwise where the result goes; of
    // a reduction, also what a member has combined on the way.
    std::byte* buffer = nullptr;
    std::uint64_t bytes = 0;  // of the message, the vector, or one block
    // As root of a broadcast: bytes of the buffer, from its start, that may be sent; of a reduction: bytes of
    // the input that may be combined.
    std::uint64_t ready = UINT64_MAX;
    // What this member contributes; may be in the buffer.
    const std::byte* input = nullptr;
    Combiner combiner{};
    // Barrier and allreduce: when all contributions are in the buffer of member 0 it is told (gathered), and
    // the result goes to the others only when it is released.
    bool hold = false;
};

}  // namespace mcastcoll
