// What a team can be asked for. The caller owns an operation and its buffers, and leaves both alone from
// Team::post() until `done`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/collective.h"

namespace mcastcoll::host {

using Kind = CollectiveKind;

inline constexpr std::size_t kKinds = 9;

constexpr bool is_rooted(Kind kind) {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}
constexpr bool is_reduction(Kind kind) {
    return kind == Kind::reduce || kind == Kind::allreduce || kind == Kind::reduce_scatter;
}

struct Operation {
    Kind kind = Kind::barrier;
    std::uint32_t root = 0;  // broadcast, reduce, gather, scatter
    // Where the message is or the result goes; reduce, gather: the root's only.
    std::byte* buffer = nullptr;
    // Everybody's contribution; scatter: the root's only. May be where the result goes (reductions, alltoall:
    // the buffer), or the part of it that stays with this member (gather, allgather: its block of the buffer;
    // scatter: the buffer is the root's block of the input).
    const std::byte* input = nullptr;
    std::size_t bytes = 0;  // of the vector, or of one block
    Combiner combiner{};
    // Broadcast, root: how much of the buffer is there already; the caller raises it.
    std::size_t ready = 0;
    // Broadcast, others: how much of the buffer is there already, to be passed on.
    std::size_t arrived = 0;
    bool done = false;
    int error = 0;  // a positive errno; FI_E* have the same numbers
};

// What a level or a blocking call was asked for, as the team's.
inline Operation operation_of(const Collective& asked) {
    return {.kind = asked.kind,
            .root = index_of(asked.root),
            .buffer = asked.buffer,
            .input = asked.input,
            .bytes = asked.bytes,
            .combiner = asked.combiner,
            .ready = std::min<std::size_t>(asked.ready, asked.bytes)};
}

// Whether a reduction can combine what it has: whole elements.
inline bool is_whole(const Operation& operation) {
    const auto [combine, element_bytes] = operation.combiner;
    return combine != nullptr && element_bytes > 0 && operation.bytes % element_bytes == 0;
}

}  // namespace mcastcoll::host
