// What everybody publishes and everybody, or a root, reads: barrier, gather, allgather, and reductions so
// small that everybody combines all of it, or its slice, for himself.
//
// One step: read in rank order, as members come. In rank order, since then a reduction's result is the same
// bits on everybody, every time. Who has seen everybody's line of a step knows that all have left the steps
// before, so that back-to-back operations never have to look at anybody's `left`.
//
// Several steps (gather, allgather): each member cuts its part into slots and publishes ahead as far as slots
// are free. A gather's root publishes nothing, and nobody else waits for anybody.
#include <algorithm>

#include "host/collectives.h"
#include "reduce/slices.h"

namespace mcastcoll::host {
namespace {

bool send_block(Context& c, const Operation& operation, const Blocks& blocks, bool leaves) {
    std::uint64_t& at = c.cursor.published;
    const Step step = c.step + at;
    if (at == blocks.count || !c.rings.may_write_slot(step)) return false;
    const std::size_t offset = at * blocks.bytes;
    const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
    copy_bytes(c.rings.slot(c.self, step), operation.input + offset, bytes);
    c.rings.publish(step, operation.kind, true, bytes, operation.bytes);
    ++at;
    c.count_step(false);
    if (leaves) c.rings.leave(step);
    return true;
}

// Copies out of the present step what has come; true when something had.
bool gather_block(Context& c, Operation& operation, const Blocks& blocks) {
    Cursor& at = c.cursor;
    if (at.gathered == at.published) return false;
    const Step step = c.step + at.gathered;
    const std::size_t offset = at.gathered * blocks.bytes;
    const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
    bool moved = false;
    for (; at.next < c.size; ++at.next, moved = true) {
        const bool own = at.next == c.self;
        if (!own && c.rings.look(at.next, step, operation.kind, operation.bytes) == 0) return moved;
        copy_bytes(operation.buffer + at.next * operation.bytes + offset,
                   own ? operation.input + offset : c.rings.slot(at.next, step), bytes);
    }
    c.rings.leave(step);
    at.next = 0;
    ++at.gathered;
    return true;
}

}  // namespace

// Everything of one step. The root of a reduction, or everybody, reads; others are done when they have
// published.
Advance gather_one(Context& c, Operation& operation) {
    const std::size_t bytes = operation.bytes;
    const bool in_line = bytes <= kInlineBytes;
    Cursor& at = c.cursor;
    bool moved = false;
    if (at.phase == Cursor::Phase::fresh) {
        if (!c.rings.may_write(c.step, in_line)) return Advance::idle;
        copy_bytes(c.rings.place(c.self, c.step, in_line), operation.input, bytes);
        c.rings.publish(c.step, operation.kind, true, bytes, bytes);
        at.phase = Cursor::Phase::published;
        moved = true;
        c.count_step(in_line);
    }
    if (!is_rooted(operation.kind) || operation.root == c.self) {
        for (; at.next < c.size; ++at.next)
            if (!read_one(c, operation, at.next)) return moved_or_idle(moved);
        c.rings.all_are_in(c.step);
    }
    c.rings.leave(c.step);
    return c.finish(1);
}

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
    Slice slice{0, bytes};
    if (operation.kind == Kind::reduce_scatter) {
        const std::size_t element_bytes = operation.combiner.element_bytes;
        slice = slice_of(c.self, c.size, bytes / element_bytes, element_bytes);
    }
    if (member != 0)
        operation.combiner(operation.buffer, from + slice.offset, slice.bytes);
    else if (slice.bytes > 0)
        std::memcpy(operation.buffer, from + slice.offset, slice.bytes);
    return true;
}

Blocks blocks_of(const Context& c, const Operation& operation) {
    const std::size_t element_bytes = is_reduction(operation.kind) ? operation.combiner.element_bytes : 1;
    const std::size_t bytes = c.rings.slot_bytes() / element_bytes * element_bytes;
    return {bytes, (operation.bytes + bytes - 1) / bytes};
}

Advance gather_blocks(Context& c, Operation& operation) {
    const Blocks blocks = blocks_of(c, operation);
    const bool collects = operation.kind == Kind::allgather || operation.root == c.self;
    Cursor& at = c.cursor;
    if (operation.kind == Kind::gather && collects) at.published = blocks.count;
    return pipeline(c, blocks.count, [&] {
        const bool sent = send_block(c, operation, blocks, !collects);
        if (collects) return gather_block(c, operation, blocks) || sent;
        at.gathered = at.published;
        return sent;
    });
}

}  // namespace mcastcoll::host
