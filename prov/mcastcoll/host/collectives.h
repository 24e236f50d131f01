// The collectives. Each carries the oldest open operation on as far as it goes without waiting, and is called
// again until it has finished; which of them an operation takes is advance()'s choice (collectives.cc).
#pragma once

#include "host/context.h"
#include "reduce/slices.h"

namespace mcastcoll::host {

// What a line carries when a message is to be copied straight out of, or into, its owner's memory.
struct Offer {
    std::uint64_t address = 0;  // of the message: a broadcast's buffer, everybody else's input
    std::uint64_t bytes = 0;
    std::uint64_t both = 0;      // broadcast: the root has all of it and would write some, too
    std::uint64_t result = 0;    // where this member's result is going to be
    std::uint64_t in_place = 0;  // and that is where the input is
};
static_assert(sizeof(Offer) <= kInlineBytes);

// So many members meet by reading each other's lines. Of more, the first one reads for all.
inline constexpr std::uint32_t kMaxFlat = 64;

Advance advance(Context& c, Operation& operation);
// Barriers, small broadcasts and small allreduces, where nothing else is open: whether it is over already,
// having looked so often for each line. If not, it goes the way of all operations, from where it stands.
bool at_once(Context& c, Operation& operation, int looks);
// Whether a failed operation's buffer may go back to its owner.
bool is_withdrawn(Context& c, const Operation& operation);

Advance broadcast(Context& c, Operation& operation);
Advance barrier_by_clusters(Context& c, Operation& operation);
Advance gather_blocks(Context& c, Operation& operation);
Advance scatter(Context& c, Operation& operation);
Advance alltoall(Context& c, Operation& operation);
Advance reduce_shares(Context& c, Operation& operation);
Advance reduce_scatter(Context& c, Operation& operation);
// Straight between memories.
Advance copy_blocks(Context& c, Operation& operation);
Advance reduce_directly(Context& c, Operation& operation);

// Parts of several of them.

// A vector or block cut into slots, by elements.
struct Blocks {
    std::size_t whole_bytes, block_bytes;
    std::uint64_t count;

    Blocks(const Context& c, const Operation& operation)
        : whole_bytes(operation.bytes), block_bytes(c.rings.slot_bytes()) {
        if (is_reduction(operation.kind)) block_bytes -= block_bytes % operation.combiner.element_bytes;
        count = (whole_bytes + block_bytes - 1) / block_bytes;
    }
    Slice at(std::uint64_t block) const {
        const std::size_t offset = block * block_bytes;
        return {offset, std::min(block_bytes, whole_bytes - offset)};
    }
};

// The first member's contribution begins a result, each other's is combined with it.
inline void combine_next(const Operation& operation, std::uint32_t member, std::byte* result,
                         const std::byte* from, std::size_t bytes) {
    if (member != 0)
        operation.combiner(result, from, bytes);
    else
        copy_bytes(result, from, bytes);
}

// What one call copies at most, so that the caller's other work goes on: with a core each, members would else
// keep each other busy to the end.
inline constexpr std::size_t kCopyAtOnce = std::size_t{1} << 20;
// Offers, and waits until everybody has. Where a member's input is its result, copying would change what
// others are still to read: then all of them see that, leave the step, and go through slots.
Way agree_on_way(Context& c, const Operation& operation);

}  // namespace mcastcoll::host
