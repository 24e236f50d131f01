// Selects the algorithm of an operation by kind and length, and implements the algorithms of one step, in
// which each member publishes a line, or slot, once, and reads the peers' once.
//
// Short broadcast: beside the flag, so that one line carries both, or in one slot. The root is done when it
// has written.
//
// Barrier, gather, allgather, and reductions so small that every member combines the whole vector or its
// slice: every member publishes, and every member, or the root, reads in rank order, as members arrive. So a
// reduction gives the same bits on all members, every time. Once a member has seen every line of a step,
// earlier steps have been left by every member, so back-to-back operations need not check the `left`
// counters.
#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Phase = Cursor::Phase;

// Longest broadcast through the root's slot alone. Longer broadcasts use the slots of all members, piece by
// piece.
constexpr std::size_t kOnePiece = 4096;

// Returns false if the contribution is missing or does not match.
bool read_one(Context& c, Operation& operation, std::uint32_t member) {
    const std::size_t bytes = operation.bytes;
    const std::uint64_t word = c.rings.look(member, c.step, operation.kind);
    if (word == 0) return false;
    if (Word::count(word) != bytes || !Word::final(word)) return c.rings.mismatch(), false;
    if (bytes == 0) return true;
    const std::byte* from = c.rings.place(member, c.step, bytes <= kInlineBytes);
    if (!is_reduction(operation.kind)) {
        std::memcpy(operation.buffer + member * bytes, from, bytes);
        return true;
    }
    reduce::Slice slice{0, bytes};
    if (operation.kind == Kind::reduce_scatter) {
        const std::size_t element_bytes = operation.combiner.element_bytes;
        slice = reduce::slice_of(c.self, c.size, bytes / element_bytes, element_bytes);
    }
    combine_next(operation, member, operation.buffer, from + slice.offset, slice.bytes);
    return true;
}

// Does the same as gather_one() for data beside the flag. gather_one() continues where this function stops.
// Polls each line in place, because returning to the caller between polls costs a tenth of the latency.
bool gather_at_once(Context& c, Operation& operation, int looks) {
    const std::size_t bytes = operation.bytes;
    if (!c.rings.may_write_line(c.step)) return false;
    if (bytes > 0) std::memcpy(c.rings.line(c.self, c.step).payload.data(), operation.input, bytes);
    c.rings.publish(c.step, operation.kind, true, bytes, bytes);
    c.cursor.phase = Phase::published;
    for (std::uint32_t& next = c.cursor.next; next < c.size; ++next) {
        std::uint64_t word = 0;
        for (int left = looks; next != c.self && (word = c.rings.look(next, c.step, operation.kind)) == 0;) {
            if (--left <= 0) return false;
            pause();
        }
        if (bytes > 0 && !read_one(c, operation, next)) return false;
        if (bytes == 0 && Word::count(word) != 0) return c.rings.mismatch(), false;
    }
    c.rings.all_are_in(c.step);
    c.rings.leave(c.step);
    c.finish(1);
    return true;
}

// Whether a broadcast fits beside the flag, or in the root's slot.
bool is_one_piece(const Context& c, const Operation& operation) {
    if (operation.bytes <= kInlineBytes) return true;
    return operation.bytes <= std::min(kOnePiece, c.rings.slot_bytes()) &&
           operation.bytes < c.bounds.single_copy_from;
}

// Whether one line or slot per member may be enough.
bool is_short(const Context& c, const Operation& operation) {
    if (operation.kind == Kind::broadcast) return operation.root < c.size && is_one_piece(c, operation);
    if (operation.bytes > kInlineBytes) return false;
    const bool flat = c.size <= kMaxFlat && c.clusters.leaders.empty();
    if (operation.kind == Kind::barrier) return operation.bytes == 0 && flat;
    if (operation.bytes == 0 || operation.bytes >= c.bounds.from(operation.kind)) return false;
    if (operation.kind == Kind::allgather) return true;
    return operation.kind == Kind::allreduce && is_whole(operation) &&
           operation.bytes < c.bounds.share_from && c.size <= kMaxFlat;
}

Advance broadcast_one_piece(Context& c, Operation& operation) {
    const std::size_t bytes = operation.bytes;
    const bool in_line = bytes <= kInlineBytes;
    if (operation.root == c.self) {
        if (operation.ready < bytes || !c.rings.may_write(c.step, in_line)) return Advance::idle;
        if (bytes > 0) std::memcpy(c.rings.place(c.self, c.step, in_line), operation.buffer, bytes);
        c.rings.publish(c.step, Kind::broadcast, true, bytes, bytes);
    } else {
        const std::uint64_t word = c.rings.look(operation.root, c.step, Kind::broadcast);
        if (word == 0) return Advance::idle;
        if (Word::count(word) != bytes || !Word::final(word)) return c.rings.mismatch(), Advance::idle;
        if (bytes > 0) std::memcpy(operation.buffer, c.rings.place(operation.root, c.step, in_line), bytes);
        operation.arrived = bytes;
    }
    c.rings.leave(c.step);
    ++c.step;  // the cursor is unchanged; resetting it would cost a seventh of the whole
    return Advance::finished;
}

// The root of a reduction, or every member, reads; a member that does not read is done after publishing.
Advance gather_one(Context& c, Operation& operation) {
    const std::size_t bytes = operation.bytes;
    const bool in_line = bytes <= kInlineBytes;
    Cursor& at = c.cursor;
    bool moved = false;
    if (at.phase == Phase::fresh) {
        if (!c.rings.may_write(c.step, in_line)) return Advance::idle;
        copy_bytes(c.rings.place(c.self, c.step, in_line), operation.input, bytes);
        c.rings.publish(c.step, operation.kind, true, bytes, bytes);
        at.phase = Phase::published;
        moved = true;
    }
    if (!is_rooted(operation.kind) || operation.root == c.self) {
        for (; at.next < c.size; ++at.next)
            if (!read_one(c, operation, at.next)) return moved_or_idle(moved);
        c.rings.all_are_in(c.step);
    }
    c.rings.leave(c.step);
    return c.finish(1);
}

// Barrier and allreduce in large teams: every member publishes, member 0 combines in rank order and publishes
// the result. So each member waits for one peer and is woken once. The result shows that every member is in
// this step.
Advance meet_at_first(Context& c, Operation& operation) {
    const std::size_t bytes = operation.bytes;
    const bool in_line = bytes <= kInlineBytes;
    Cursor& at = c.cursor;
    bool moved = false;
    if (at.phase == Phase::fresh) {
        if (!c.rings.may_write(c.step, in_line)) return Advance::idle;
        copy_bytes(c.rings.place(c.self, c.step, in_line), operation.input, bytes);
        c.rings.publish(c.step, operation.kind, c.self != 0, bytes, bytes);
        at.phase = Phase::published;
        moved = true;
    }
    std::byte* result = c.rings.place(0, c.step, in_line);
    if (c.self != 0) {
        const std::uint64_t word = c.rings.look(0, c.step, operation.kind);
        if (!Word::final(word)) return c.rings.await(0), moved_or_idle(moved);
        if (Word::count(word) != bytes) return c.rings.mismatch(), Advance::idle;
        copy_bytes(operation.buffer, result, bytes);
    } else {
        if (at.next == 0) combine_next(operation, at.next++, operation.buffer, operation.input, bytes);
        for (; at.next < c.size; ++at.next)
            if (!read_one(c, operation, at.next)) return moved_or_idle(moved);
        copy_bytes(result, operation.buffer, bytes);
        c.rings.publish(c.step, operation.kind, true, bytes);
    }
    c.rings.all_are_in(c.step);
    c.rings.leave(c.step);
    return c.finish(1);
}

Advance go_through_slots(Context& c, Operation& operation) {
    switch (operation.kind) {
        case Kind::broadcast:
            return is_one_piece(c, operation) ? broadcast_one_piece(c, operation) : broadcast(c, operation);
        case Kind::barrier:
            if (!c.clusters.leaders.empty()) return barrier_by_clusters(c, operation);
            return c.size > kMaxFlat ? meet_at_first(c, operation) : gather_one(c, operation);
        case Kind::reduce:
            // The root alone needs the vectors, so shares pay only if a vector does not fit in a slot.
            return operation.bytes > c.bounds.reduce_whole ? reduce_shares(c, operation)
                                                           : gather_one(c, operation);
        case Kind::allreduce:
            if (operation.bytes >= c.bounds.share_from) return reduce_shares(c, operation);
            return c.size > kMaxFlat ? meet_at_first(c, operation) : gather_one(c, operation);
        case Kind::reduce_scatter:
            return operation.bytes > c.rings.slot_bytes() ? reduce_scatter(c, operation)
                                                          : gather_one(c, operation);
        case Kind::gather:
        case Kind::allgather:
            return operation.bytes > kInlineBytes ? gather_blocks(c, operation) : gather_one(c, operation);
        case Kind::scatter:
            return scatter(c, operation);
        case Kind::alltoall:
            return alltoall(c, operation);
    }
    return Advance::idle;
}

}  // namespace

Advance advance(Context& c, Operation& operation) {
    if (operation.bytes < c.bounds.from(operation.kind)) return go_through_slots(c, operation);
    const bool reduces = is_reduction(operation.kind);
    const Way way = reduces || operation.kind == Kind::alltoall ? agree_on_way(c, operation) : Way::direct;
    if (way == Way::undecided) return Advance::idle;
    if (way == Way::slots) return go_through_slots(c, operation);
    return reduces ? reduce_directly(c, operation) : copy_blocks(c, operation);
}

bool at_once(Context& c, Operation& operation, int looks) {
    if (c.rings.failure() != 0 || !is_short(c, operation)) return false;
    if (operation.kind != Kind::broadcast) {
        if (!gather_at_once(c, operation, looks)) return false;
    } else {
        while (broadcast_one_piece(c, operation) != Advance::finished) {
            if (--looks <= 0) return false;
            pause();
        }
    }
    ++c.counters.operations;
    c.counters.bytes += operation.bytes;
    operation.error = 0;
    operation.done = true;
    return true;
}

}  // namespace mcastcoll::host
