// Large reductions, straight between memories: each member combines its slice of all inputs, which it reads
// where they are, in rank order.
//
//     offer      everybody: where the input is, where the result is going to be
//     combine    piece by piece: the first member's, then the second's over it ...; a piece lies in the cache
//     (reduce_scatter ends here)
//     told       "my slice is done" (the line is published again, final)
//     collect    allreduce: as they are done, everybody else's slice, out of their results
//     left       nobody reads from this member any more
//
// An allreduce may have its input where the result goes: a slice of a buffer is written by its owner only
// after everything else that is read of it, since whoever writes another's slice into its own buffer has
// heard that the other is done with it. Only the own slice must not be overwritten before its turn comes: it
// grows in own slots, of which nobody has any use now. A reduce_scatter's result would overwrite what others
// read: then through slots.
#include <algorithm>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Phase = Cursor::Phase;

// The next piece of the own slice, into `result`; false when the team has failed.
bool combine_piece(Context& c, const Operation& operation, const Slice& slice, std::byte* result) {
    std::size_t& within = c.cursor.within;
    const std::size_t element_bytes = operation.combiner.element_bytes;
    // Half of the own slots to grow in, half for what comes.
    std::byte* own_slots = c.rings.slots_of(c.self);
    const std::size_t half = c.rings.slots() * c.rings.slot_bytes() / 2 / 64 * 64;
    const std::size_t bytes = std::min(half / element_bytes * element_bytes, slice.bytes - within);
    const std::size_t offset = slice.offset + within;
    std::byte* incoming = own_slots + half;
    std::byte* grows = operation.input == operation.buffer ? own_slots : result + within;
    for (std::uint32_t member = 0; member < c.size; ++member) {
        const std::byte* from = operation.input + offset;
        if (member != c.self) {
            Offer offer;
            if (!see_offer(c, member, operation, offer)) return false;
            std::byte* to = member == 0 ? grows : incoming;
            if (!c.memories.read(member, offer.address + offset, to, bytes)) return false;
            from = to;
        }
        if (member == 0)
            copy_bytes(grows, from, bytes);
        else
            operation.combiner(grows, from, bytes);
    }
    copy_bytes(result + within, grows, bytes);
    within += bytes;
    return true;
}

}  // namespace

Advance reduce_directly(Context& c, Operation& operation) {
    Cursor& at = c.cursor;
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const auto slice_for = [&](std::uint32_t member) {
        return slice_of(member, c.size, operation.bytes / element_bytes, element_bytes);
    };
    const bool scatters = operation.kind == Kind::reduce_scatter;
    std::size_t budget = kCopyAtOnce;
    if (at.phase == Phase::published) {
        const Slice own = slice_for(c.self);
        std::byte* result = operation.buffer + (scatters ? 0 : own.offset);
        while (at.within < own.bytes) {
            const std::size_t before = at.within;
            if (!combine_piece(c, operation, own, result)) return Advance::idle;
            const std::size_t read = (at.within - before) * (c.size - 1);
            budget -= std::min(budget, read);
            if (budget == 0 && at.within < own.bytes) return Advance::moved;
        }
        at.within = 0;
        at.phase = Phase::combined;
        if (!scatters) c.rings.publish(c.step, operation.kind, true, 0);
        at.next = scatters ? c.size : 1;
    }
    for (; at.phase == Phase::combined && at.next < c.size; ++at.next) {
        const std::uint32_t member = (c.self + at.next) % c.size;
        if (budget == 0) return Advance::moved;
        if (!Word::final(c.rings.look(member, c.step, operation.kind))) {
            c.rings.await(member);
            return moved_or_idle(budget < kCopyAtOnce);
        }
        Offer offer;
        if (!see_offer(c, member, operation, offer)) return Advance::idle;
        const Slice slice = slice_for(member);
        if (!pull(c, member, offer.result + slice.offset, operation.buffer + slice.offset, slice.bytes,
                  budget))
            return moved_or_idle(c.rings.failure() == 0);
    }
    if (at.phase == Phase::combined) leave_to_readers(c, 0);
    return await_readers(c, c.size);
}

}  // namespace mcastcoll::host
