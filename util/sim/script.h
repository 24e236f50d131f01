// What the applications of a group do, and when they come to it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/effects.h"
#include "simulation.h"

namespace mcastcoll::sim {

// How the vectors of a reduction are combined. Only the sum does not care in which order.
enum class Combination : std::uint8_t { sum, mix, wide };
inline constexpr std::uint8_t kCombinationCount = 3;
Combiner combiner_of(Combination combination);

struct Step {
    CollectiveKind kind = CollectiveKind::broadcast;
    Rank root{};
    std::uint64_t bytes = 0;
    bool streamed = false;  // the root, of a reduction everybody, gets its bytes bit by bit
    Combination combination = Combination::sum;
    bool in_place = false;  // of a reduction
    bool hold = false;      // rank 0 adds something when all is gathered
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
                               std::uint64_t most_bytes);

// The same, but a share of the broadcasts is streamed, and another share are reductions of all sorts.
std::vector<Step> varied_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                                std::uint64_t most_bytes);

// The bytes of a broadcast: different for every group and step. From an offset on, if it is wanted in parts.
std::vector<std::byte> content_of(std::uint64_t group, std::uint64_t step, std::uint64_t bytes,
                                  std::uint64_t offset = 0);
// What a rank contributes to a reduction. Rank kOutside is what is added when rank 0 holds it.
inline constexpr std::uint32_t kOutside = UINT32_MAX;
std::vector<std::byte> vector_of(std::uint32_t group, std::uint64_t step, std::uint32_t rank,
                                 std::uint64_t bytes);
// What everybody's vectors come to: a member combines its own, then its children's in the tree, in order.
std::vector<std::byte> reduced(std::uint32_t group, std::uint64_t number, const Step& step,
                               std::uint32_t members, std::uint32_t arity);

// So many bytes, from an offset on, of what a member has given.
using PartOfInput =
    std::function<std::vector<std::byte>(std::uint32_t member, std::size_t offset, std::size_t bytes)>;
// What a member has when a collective operation is over; empty where it gets nothing.
std::vector<std::byte> outcome(const Collective& what, std::uint32_t self, std::uint32_t members,
                               const PartOfInput& part);

inline constexpr std::byte kUntouched{0xee};  // in a buffer that is to be filled
inline constexpr std::byte kScribble{0xdd};   // in one that is the application's again
inline bool scribbled(const std::vector<std::byte>& buffer) {
    return std::ranges::all_of(buffer, [](std::byte byte) { return byte == kScribble; });
}

// How far apart the members come to an operation.
struct Arrival {
    enum class Pattern : std::uint8_t {
        together,
        skew,        // each by itself, up to `by` late
        root_first,  // all but the root are late by `by`
        root_late,   // the root is
        one_late,    // one of them is, another one every time
    };
    Pattern pattern = Pattern::together;
    Nanoseconds by{};

    // Wakes endpoints [first, first + members), ranks 0 and on, when they come to a step that begins at
    // `start`.
    void wake(Network& network, std::uint32_t first, std::uint32_t members, const Step& step,
              Nanoseconds start, std::uint32_t tag, Random& random) const;
};

}  // namespace mcastcoll::sim
