// Larger reductions: each member combines a share of the vector, for all.
//
// The vector is cut into blocks of a slot. For each block, in one step:
//
//   contribute   everybody copies its block into its slot and publishes it
//   reduce       when all have, each member combines its share of the block, out of all slots, in rank order,
//   into its
//                own slot, over its own contribution to that share, which nobody else reads; and publishes
//                again
//   collect      when all have, everybody (or the root) copies everybody's share out of their slots
//
// Blocks overlap: a member contributes as far ahead as slots are free. What is under way stays in the caches.
// With the order of ranks fixed in every share, the result is the same bits on everybody, every time.
#include <algorithm>
#include <cstring>

#include "host/team.h"

namespace mcastcoll::host {
namespace {

constexpr std::uint64_t kContributed = 1;
constexpr std::uint64_t kReduced = 2;

}  // namespace

// Whole lines of the cache, where elements allow it.
Team::Share Team::share_of(std::uint32_t member, std::size_t block_bytes, std::size_t element_bytes) const {
    const std::size_t grain = 64 % element_bytes == 0 ? 64 : element_bytes;
    const std::size_t grains = (block_bytes + grain - 1) / grain;
    const std::size_t begin = std::min(grains * member / size_ * grain, block_bytes);
    const std::size_t end = std::min(grains * (member + 1) / size_ * grain, block_bytes);
    return {begin, end - begin};
}

Team::Advance Team::reduce_shares(Operation& operation) {
    const Blocks blocks = blocks_of(operation);
    const bool collects = operation.kind == Kind::allreduce || operation.root == self_;
    bool moved = false, again = true;
    while (again) {
        again = contribute(operation, blocks);
        again |= reduce_share(operation, blocks);
        if (collects)
            again |= collect_shares(operation, blocks);
        else
            course_.gathered = course_.reduced;
        moved |= again;
        if (course_.gathered == blocks.count) return finish(operation, blocks.count);
    }
    return moved ? Advance::moved : Advance::idle;
}

// The own share is combined straight from the input.
bool Team::contribute(const Operation& operation, const Blocks& blocks) {
    const Step step = step_ + course_.published;
    if (course_.published == blocks.count || !may_write(step, slots_)) return false;
    const std::size_t offset = course_.published * blocks.bytes;
    const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
    const Share own = share_of(self_, bytes, operation.combiner.element_bytes);
    const std::size_t after = own.begin + own.bytes;
    std::byte* slot = slot_of(self_, step);
    std::memcpy(slot, operation.input + offset, own.begin);
    std::memcpy(slot + after, operation.input + offset + after, bytes - after);
    line_of(self_, step).extent.store(operation.bytes, std::memory_order_relaxed);
    publish(step, operation.kind, false, kContributed);
    ++course_.published;
    ++counters_.slot_steps;
    return true;
}

bool Team::reduce_share(const Operation& operation, const Blocks& blocks) {
    if (course_.reduced == course_.published) return false;
    const Step step = step_ + course_.reduced;
    for (; course_.next_reduced < size_; ++course_.next_reduced) {
        const std::uint32_t member = course_.next_reduced;
        if (look(member, step, operation.kind) == 0) return false;
        if (line_of(member, step).extent.load(std::memory_order_relaxed) != operation.bytes)
            return mismatch(), false;
    }
    course_.next_reduced = 0;
    const std::size_t offset = course_.reduced * blocks.bytes;
    const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
    const Share own = share_of(self_, bytes, operation.combiner.element_bytes);
    std::byte* result = slot_of(self_, step) + own.begin;
    for (std::uint32_t member = 0; member < size_ && own.bytes > 0; ++member) {
        const std::byte* from =
            (member == self_ ? operation.input + offset : slot_of(member, step)) + own.begin;
        if (member == 0)
            std::memcpy(result, from, own.bytes);
        else
            operation.combiner(result, from, own.bytes);
    }
    publish(step, operation.kind, true, kReduced);
    ++course_.reduced;
    if (operation.kind == Kind::reduce && operation.root != self_) leave(step);
    return true;
}

bool Team::collect_shares(Operation& operation, const Blocks& blocks) {
    if (course_.gathered == course_.reduced) return false;
    const Step step = step_ + course_.gathered;
    const std::size_t offset = course_.gathered * blocks.bytes;
    const std::size_t bytes = std::min(blocks.bytes, operation.bytes - offset);
    bool moved = false;
    for (; course_.next < size_; ++course_.next, moved = true) {
        const std::uint64_t word = look(course_.next, step, operation.kind);
        if (!Word::final(word)) {
            blocker_ = course_.next;
            return moved;
        }
        const Share share = share_of(course_.next, bytes, operation.combiner.element_bytes);
        if (share.bytes > 0)
            std::memcpy(operation.buffer + offset + share.begin, slot_of(course_.next, step) + share.begin,
                        share.bytes);
    }
    leave(step);
    course_.next = 0;
    ++course_.gathered;
    return true;
}

}  // namespace mcastcoll::host
