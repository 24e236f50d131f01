// Large blocks, straight between memories: whoever needs a block copies it out of its owner's input.
//
// One step. Members whose input others read offer its address, everybody copies what it needs, leaves the
// step, and waits until all who read from it have left, too: only then may its input change again. Members
// begin with their right neighbour and go round, so that not all read from one at the same time.
//
//     gather       the root reads everybody's           allgather   everybody reads everybody's
//     scatter      everybody reads its block of the root's input    alltoall    of everybody's
//
// Nobody writes into another's memory here, so that an operation that fails may end at once: what was read
// from a member that had its buffer back already was read after the failure was told, which is looked at
// after each copy.
#include <algorithm>
#include <cstring>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Phase = Cursor::Phase;

bool publish_offer(Context& c, const Operation& operation) {
    if (!c.rings.may_write_line(c.step)) return false;
    const Offer offer{.address = reinterpret_cast<std::uintptr_t>(operation.input),
                      .bytes = operation.bytes,
                      .result = reinterpret_cast<std::uintptr_t>(operation.buffer),
                      .in_place = operation.input == operation.buffer};
    std::memcpy(c.rings.line(c.self, c.step).payload.data(), &offer, sizeof offer);
    c.rings.publish(c.step, operation.kind, false, 0, operation.bytes);
    c.cursor.phase = Phase::published;
    ++c.counters.single_copies;
    return true;
}

// False when it is not there yet, or does not fit.
bool see_offer(Context& c, std::uint32_t member, const Operation& operation, Offer& offer) {
    if (c.rings.look(member, c.step, operation.kind, operation.bytes) == 0) return false;
    std::memcpy(&offer, c.rings.line(member, c.step).payload.data(), sizeof offer);
    if (offer.bytes == operation.bytes) return true;
    return c.rings.mismatch(), false;
}

// Copies `bytes` from the member's memory, piece by piece, until the budget is used up; true when all are
// there.
bool pull(Context& c, std::uint32_t member, std::uint64_t from, std::byte* to, std::size_t bytes,
          std::size_t& budget) {
    std::size_t& within = c.cursor.within;
    while (within < bytes && budget > 0) {
        const std::size_t part = std::min(bytes - within, budget);
        if (!c.memories.read(member, from + within, to + within, part)) return false;
        within += part;
        budget -= part;
    }
    if (within < bytes) return false;
    within = 0;
    return true;
}

// Leaves the step; the operation is over when all that read this member's memory, from the first on, have
// left it.
void leave_to_readers(Context& c, std::uint32_t first) {
    c.rings.leave(c.step);
    c.cursor.phase = Phase::left;
    c.cursor.next = first;
}

Advance await_readers(Context& c, std::uint32_t end) {
    for (; c.cursor.next < end; ++c.cursor.next)
        if (!c.rings.has_left(c.cursor.next, c.step)) return Advance::idle;
    return c.finish(1);
}

}  // namespace

Way agree_on_way(Context& c, const Operation& operation) {
    Cursor& at = c.cursor;
    if (at.way != Way::undecided) return at.way;
    if (at.phase == Phase::fresh && !publish_offer(c, operation)) return Way::undecided;
    for (; at.next_seen < c.size; ++at.next_seen) {
        Offer offer;
        if (!see_offer(c, at.next_seen, operation, offer)) return Way::undecided;
        at.in_place = at.in_place || offer.in_place != 0;
    }
    c.rings.all_are_in(c.step);
    // An allreduce may be in place.
    if (!at.in_place || operation.kind == Kind::allreduce) return at.way = Way::direct;
    c.rings.leave(c.step++);
    at = {};
    return at.way = Way::slots;
}

Advance copy_blocks(Context& c, Operation& operation) {
    Cursor& at = c.cursor;
    if (at.phase == Phase::fresh && !publish_offer(c, operation)) return Advance::idle;
    const bool gathers = operation.kind == Kind::gather, scatters = operation.kind == Kind::scatter;
    const bool is_root = (gathers || scatters) && operation.root == c.self;
    const bool from_all = gathers ? is_root : !scatters;
    const std::size_t bytes = operation.bytes;
    const std::size_t offset = scatters || operation.kind == Kind::alltoall ? c.self * bytes : 0;
    const std::uint32_t sources = from_all ? c.size : scatters ? 1 : 0;
    std::size_t budget = kCopyAtOnce;
    for (; at.phase != Phase::left && at.next < sources; ++at.next) {
        const std::uint32_t member = from_all ? (c.self + at.next) % c.size : operation.root;
        std::byte* to = operation.buffer + (from_all ? member * bytes : 0);
        if (member == c.self) {
            copy_bytes(to, operation.input + offset, bytes);
            continue;
        }
        if (budget == 0) return Advance::moved;
        Offer offer;
        if (!see_offer(c, member, operation, offer)) return moved_or_idle(budget < kCopyAtOnce);
        if (!pull(c, member, offer.address + offset, to, bytes, budget))
            return moved_or_idle(c.rings.failure() == 0);
    }
    // Who read from this member: everybody, the root, or nobody.
    const bool by_root = gathers && !is_root, by_nobody = gathers ? is_root : scatters && !is_root;
    if (at.phase != Phase::left) leave_to_readers(c, by_root ? operation.root : 0);
    return await_readers(c, by_nobody ? 0 : by_root ? operation.root + 1 : c.size);
}

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
namespace {

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
        combine_next(operation, member, grows, from, bytes);
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
