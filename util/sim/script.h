// Operations of the applications of a group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/collective.h"
#include "base/combiner.h"
#include "base/types.h"

namespace mcastcoll::sim {

// Combination of vectors in a reduction. Only `sum` does not depend on the order.
enum class Combination : std::uint8_t { sum, mix, wide };
inline constexpr std::uint8_t kCombinationCount = 3;
Combiner combiner_of(Combination combination);

struct Step {
    CollectiveKind kind = CollectiveKind::broadcast;
    Rank root{};
    std::uint64_t bytes = 0;
    bool streamed = false;  // the root, or in a reduction every member, gets its bytes bit by bit
    Combination combination = Combination::sum;
    bool in_place = false;  // of a reduction
    bool hold = false;      // rank 0 adds a vector after all others have been gathered
};

inline Step broadcast(std::uint32_t root, std::uint64_t bytes) {
    return {CollectiveKind::broadcast, rank_of(root), bytes};
}
inline Step streamed(std::uint32_t root, std::uint64_t bytes) {
    return {CollectiveKind::broadcast, rank_of(root), bytes, true};
}
inline Step reduce(std::uint64_t bytes, Combination combination = Combination::mix) {
    return {.kind = CollectiveKind::reduce, .bytes = bytes, .combination = combination};
}
inline Step allreduce(std::uint64_t bytes, Combination combination = Combination::mix) {
    return {.kind = CollectiveKind::allreduce, .bytes = bytes, .combination = combination};
}
inline Step barrier() {
    return {CollectiveKind::barrier, rank_of(0), 0};
}
// Broadcasts of mixed sizes from mixed roots, and barriers.
std::vector<Step> mixed_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                               std::uint64_t max_bytes);

// Like mixed_script(), with a share of the broadcasts streamed, and another share replaced by all kinds of
// reductions.
std::vector<Step> varied_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                                std::uint64_t max_bytes);

// Returns `bytes` bytes of a broadcast, from `offset` on; they differ for every group and step.
std::vector<std::byte> content_of(std::uint64_t group, std::uint64_t step, std::uint64_t bytes,
                                  std::uint64_t offset = 0);
// Instead of a rank: the contribution that is added while rank 0 holds a reduction.
inline constexpr std::uint32_t kOutside = UINT32_MAX;
// Returns a rank's contribution to a reduction.
std::vector<std::byte> vector_of(std::uint32_t group, std::uint64_t step, std::uint32_t rank,
                                 std::uint64_t bytes);
// The result of a reduction: a member combines its own vector, then its children's in the tree, in order.
std::vector<std::byte> reduced(std::uint32_t group, std::uint64_t number, const Step& step,
                               std::uint32_t members, std::uint32_t arity);

// A function that returns `bytes` bytes of a member's contribution, from `offset` on.
using PartOfInput =
    std::function<std::vector<std::byte>(std::uint32_t member, std::size_t offset, std::size_t bytes)>;
// Returns a member's result of a collective operation; empty if the member gets none.
std::vector<std::byte> outcome(const Collective& what, std::uint32_t self, std::uint32_t members,
                               const PartOfInput& part);

inline constexpr std::byte kUntouched{0xee};  // initial contents of a buffer to be filled
inline constexpr std::byte kScribble{0xdd};   // contents of a buffer returned to the application
inline bool scribbled(const std::vector<std::byte>& buffer) {
    return std::ranges::all_of(buffer, [](std::byte byte) { return byte == kScribble; });
}

}  // namespace mcastcoll::sim
