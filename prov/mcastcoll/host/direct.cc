// Large blocks, directly between memories: a member copies the needed blocks out of their owners' inputs.
//
// One step: members whose input is read by others offer its address; each member copies the needed blocks,
// leaves the step, and waits until its readers have left, too. Only then may its input change again. Each
// member starts with its right neighbour and goes round, which spreads the reads over the members.
//
//     gather       the root reads all inputs
//     scatter      each member reads its block of the root's input
//     allgather    each member reads all inputs
//     alltoall     each member reads its block of every input
//
// No member writes into another's memory here, so a failed operation may end at once: data read from a buffer
// after its owner got it back was read after the failure was published, which is checked after each copy.
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

// Returns false if the offer is not there yet, or does not match.
bool see_offer(Context& c, std::uint32_t member, const Operation& operation, Offer& offer) {
    if (c.rings.look(member, c.step, operation.kind, operation.bytes) == 0) return false;
    std::memcpy(&offer, c.rings.line(member, c.step).payload.data(), sizeof offer);
    if (offer.bytes == operation.bytes) return true;
    return c.rings.mismatch(), false;
}

// Copies `bytes` from the member's memory piece by piece until the budget is used up. Returns true when all
// bytes are copied.
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

// Leaves the step. The operation is finished when the readers of this member's memory, from `first` on, have
// left the step.
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
    // The readers of this member's input: all members, the root, or none.
    const bool by_root = gathers && !is_root, by_none = gathers ? is_root : scatters && !is_root;
    if (at.phase != Phase::left) leave_to_readers(c, by_root ? operation.root : 0);
    return await_readers(c, by_none ? 0 : by_root ? operation.root + 1 : c.size);
}

// Large reductions, directly between memories: each member combines its slice out of the inputs in rank
// order.
//
//     offer      all: addresses of the input and of the future result
//     combine    piece by piece: the first member's, then the second's over it ...; a piece stays in the
//                cache (reduce_scatter ends here)
//     announce   "my slice is done" (the line is published again, final)
//     collect    allreduce: the other slices, as they are done, out of their owners' results
//     left       no member reads from this member any more
//
// An allreduce may have its input as its result: a slice of a buffer is overwritten only after its last read,
// since a member writes a peer's slice into its own buffer only after the peer has announced the slice as
// done. The member's own slice must not be overwritten early: it is combined in the member's own slots, which
// are unused here. The result of a reduce_scatter would overwrite data still to be read by peers, so such an
// operation uses slots.
namespace {

// Combines the next piece of this member's slice into `result`. Returns false if the team has failed.
bool combine_piece(Context& c, const Operation& operation, const reduce::Slice& slice, std::byte* result) {
    std::size_t& within = c.cursor.within;
    const std::size_t element_bytes = operation.combiner.element_bytes;
    // Half of the own slots for the result, half for incoming data.
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
        return reduce::slice_of(member, c.size, operation.bytes / element_bytes, element_bytes);
    };
    const bool scatters = operation.kind == Kind::reduce_scatter;
    std::size_t budget = kCopyAtOnce;
    if (at.phase == Phase::published) {
        const reduce::Slice own = slice_for(c.self);
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
        const reduce::Slice slice = slice_for(member);
        if (!pull(c, member, offer.result + slice.offset, operation.buffer + slice.offset, slice.bytes,
                  budget))
            return moved_or_idle(c.rings.failure() == 0);
    }
    if (at.phase == Phase::combined) leave_to_readers(c, 0);
    return await_readers(c, c.size);
}

}  // namespace mcastcoll::host
