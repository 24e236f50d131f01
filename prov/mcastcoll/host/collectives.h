// The collectives. Each function advances the oldest open operation as far as possible without waiting, and
// is called again until the operation has finished. advance() selects the algorithm (collectives.cc).
#pragma once

#include "host/context.h"
#include "reduce/slices.h"

namespace mcastcoll::host {

// The payload of a line when a message is to be copied directly out of, or into, its owner's memory.
struct Offer {
    std::uint64_t address = 0;  // of the message: a broadcast's buffer, for other operations the input
    std::uint64_t bytes = 0;
    std::uint64_t both = 0;      // broadcast: the root has the whole message and offers to write a part of it
    std::uint64_t result = 0;    // where this member's result will be
    std::uint64_t in_place = 0;  // whether the result overwrites the input
};
static_assert(sizeof(Offer) <= kInlineBytes);

// Largest team in which all members read each other's lines. In larger teams member 0 reads for all.
inline constexpr std::uint32_t kMaxFlat = 64;

Advance advance(Context& c, Operation& operation);
// Runs a barrier, small broadcast or small allreduce if no other operation is open, and polls each line
// `looks` times. Returns true if the operation is complete; otherwise advance() continues from the reached
// state.
bool at_once(Context& c, Operation& operation, int looks);
// Whether a failed operation's buffer may be returned to its owner, because no member writes into it any
// more.
bool is_withdrawn(Context& c, const Operation& operation);

Advance broadcast(Context& c, Operation& operation);
Advance barrier_by_clusters(Context& c, Operation& operation);
Advance gather_blocks(Context& c, Operation& operation);
Advance scatter(Context& c, Operation& operation);
Advance alltoall(Context& c, Operation& operation);
Advance reduce_shares(Context& c, Operation& operation);
Advance reduce_scatter(Context& c, Operation& operation);
// The next two copy directly between memories.
Advance copy_blocks(Context& c, Operation& operation);
Advance reduce_directly(Context& c, Operation& operation);

// Parts shared by several collectives.

// A vector or block, divided into slots of whole elements.
struct Blocks {
    std::size_t whole_bytes, block_bytes;
    std::uint64_t count;

    Blocks(const Context& c, const Operation& operation)
        : whole_bytes(operation.bytes), block_bytes(c.rings.slot_bytes()) {
        if (is_reduction(operation.kind)) block_bytes -= block_bytes % operation.combiner.element_bytes;
        count = (whole_bytes + block_bytes - 1) / block_bytes;
    }
    reduce::Slice at(std::uint64_t block) const {
        const std::size_t offset = block * block_bytes;
        return {offset, std::min(block_bytes, whole_bytes - offset)};
    }
};

// Copies the first member's contribution and combines the contributions of later members with it.
inline void combine_next(const Operation& operation, std::uint32_t member, std::byte* result,
                         const std::byte* from, std::size_t bytes) {
    if (member != 0)
        operation.combiner(result, from, bytes);
    else
        copy_bytes(result, from, bytes);
}

// Maximum number of bytes copied in one call. The limit keeps the caller's other work going. Without the
// limit, members with a core each would keep each other busy until the operation ends.
inline constexpr std::size_t kCopyAtOnce = std::size_t{1} << 20;
// Publishes an offer, and waits for the offers of all members. If a member's input is its result, copying
// would change data still to be read by peers: the offers show this to every member, and the team leaves the
// step and uses slots.
Way agree_on_way(Context& c, const Operation& operation);

}  // namespace mcastcoll::host
