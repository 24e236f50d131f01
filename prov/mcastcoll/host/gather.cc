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
#include <cstring>

#include "host/team.h"
#include "reduce/slices.h"

namespace mcastcoll::host {

// Everything of one step. The root of a reduction, or everybody, reads; others are done when they have
// published.
Team::Advance Team::gather_one(Operation& operation) {
    const std::size_t bytes = operation.bytes;
    const bool in_line = bytes <= kInlineBytes;
    bool moved = false;
    if (!course_.begun) {
        if (!may_write(step_, in_line ? kLines : slots_)) return Advance::idle;
        if (bytes > 0) {
            std::byte* to = in_line ? line_of(self_, step_).payload.data() : slot_of(self_, step_);
            std::memcpy(to, operation.input, bytes);
        }
        line_of(self_, step_).extent.store(bytes, std::memory_order_relaxed);
        publish(step_, operation.kind, true, bytes);
        course_.begun = moved = true;
        ++(in_line ? counters_.inline_steps : counters_.slot_steps);
    }
    if (is_rooted(operation.kind) && operation.root != self_) {
        leave(step_);
        return finish(operation, 1);
    }
    for (; course_.next < size_; ++course_.next)
        if (!read_one(operation, course_.next, step_)) return moved ? Advance::moved : Advance::idle;
    watermark_ = std::max(watermark_, step_);
    leave(step_);
    return finish(operation, 1);
}

bool Team::read_one(Operation& operation, std::uint32_t member, Step step) {
    const std::size_t bytes = operation.bytes;
    const std::uint64_t word = look(member, step, operation.kind);
    if (word == 0) return false;
    if (Word::count(word) != bytes || !Word::final(word)) return mismatch(), false;
    if (bytes == 0) return true;
    const bool in_line = bytes <= kInlineBytes;
    const std::byte* from = in_line ? line_of(member, step).payload.data() : slot_of(member, step);
    if (!is_reduction(operation.kind)) {
        std::memcpy(operation.buffer + member * bytes, from, bytes);
        return true;
    }
    Slice slice{0, bytes};
    if (operation.kind == Kind::reduce_scatter) {
        const std::size_t element_bytes = operation.combiner.element_bytes;
        slice = slice_of(self_, size_, bytes / element_bytes, element_bytes);
    }
    if (member != 0)
        operation.combiner(operation.buffer, from + slice.offset, slice.bytes);
    else if (slice.bytes > 0)
        std::memcpy(operation.buffer, from + slice.offset, slice.bytes);
    return true;
}

Team::Blocks Team::blocks_of(const Operation& operation) const {
    const std::size_t element_bytes = is_reduction(operation.kind) ? operation.combiner.element_bytes : 1;
    const std::size_t bytes = slot_bytes_ / element_bytes * element_bytes;
    return {bytes, (operation.bytes + bytes - 1) / bytes};
}

Team::Advance Team::gather_blocks(Operation& operation) {
    const Blocks blocks = blocks_of(operation);
    const bool collects = operation.kind == Kind::allgather || operation.root == self_;
    if (operation.kind == Kind::gather && collects) course_.published = blocks.count;
    bool moved = false, again = true;
    while (again) {
        again = false;
        if (course_.published < blocks.count && may_write(step_ + course_.published, slots_)) {
            const Step step = step_ + course_.published;
            const std::size_t offset = course_.published * blocks.bytes;
            const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
            std::memcpy(slot_of(self_, step), operation.input + offset, bytes);
            line_of(self_, step).extent.store(operation.bytes, std::memory_order_relaxed);
            publish(step, operation.kind, true, bytes);
            ++course_.published;
            ++counters_.slot_steps;
            again = true;
            if (!collects) leave(step);
        }
        if (collects)
            again |= gather_block(operation, blocks);
        else
            course_.gathered = course_.published;
        moved |= again;
        if (course_.gathered == blocks.count) return finish(operation, blocks.count);
    }
    return moved ? Advance::moved : Advance::idle;
}

// Copies out of the present step what has come; true when something had.
bool Team::gather_block(Operation& operation, const Blocks& blocks) {
    if (course_.gathered == course_.published) return false;
    const Step step = step_ + course_.gathered;
    const std::size_t offset = course_.gathered * blocks.bytes;
    const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
    bool moved = false;
    for (; course_.next < size_; ++course_.next, moved = true) {
        const std::uint32_t member = course_.next;
        std::byte* to = operation.buffer + member * operation.bytes + offset;
        if (member == self_) {
            if (to != operation.input + offset) std::memcpy(to, operation.input + offset, bytes);
            continue;
        }
        if (look(member, step, operation.kind) == 0) return moved;
        if (line_of(member, step).extent.load(std::memory_order_relaxed) != operation.bytes)
            return mismatch(), moved;
        std::memcpy(to, slot_of(member, step), bytes);
    }
    leave(step);
    course_.next = 0;
    ++course_.gathered;
    return true;
}

}  // namespace mcastcoll::host
