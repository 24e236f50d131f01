// A collective operation. The same record is used from the libfabric call down to the packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/combiner.h"
#include "base/types.h"

namespace mcastcoll {

// How each kind uses `input` -> `buffer`, with n members and blocks of `bytes`:
//   gather          bytes -> n blocks, at the root only      scatter     n blocks, at the root -> bytes
//   allgather       bytes -> n blocks                        alltoall    n blocks -> n blocks
//   reduce_scatter  a vector of `bytes` in total -> this member's slice_of() it (reduce/slices.h)
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

// The name is NUL-terminated.
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

// True when each member contributes a block, or one block for each other member.
constexpr bool moves_blocks(CollectiveKind kind) {
    return kind >= CollectiveKind::allgather;
}

constexpr bool is_reduction(CollectiveKind kind) {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::allreduce ||
           kind == CollectiveKind::reduce_scatter;
}

struct Collective {
    CollectiveKind kind = CollectiveKind::broadcast;
    // The root, for kinds that have one: a rank of the group, or on a level the index of one of its members.
    Rank root{};
    // Belongs to the caller until the operation completes. Holds a broadcast's message, otherwise the result;
    // in a reduction also partial results.
    std::byte* buffer = nullptr;
    std::uint64_t bytes = 0;  // of the message, the vector, or one block
    // Root of a broadcast: how many bytes from the start of the buffer may be sent already. Reduction: how
    // many bytes of the input may be combined already.
    std::uint64_t ready = UINT64_MAX;
    // This member's contribution; may lie inside the buffer.
    const std::byte* input = nullptr;
    Combiner combiner{};
    // Barrier and allreduce: member 0 is notified when every contribution is in its buffer (gathered), and
    // the result is sent to the rest only after release.
    bool hold = false;
};

}  // namespace mcastcoll
