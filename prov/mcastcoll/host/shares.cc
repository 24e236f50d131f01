// Larger reductions: each member combines a share of the vector, for all.
//
// The vector is cut into blocks of a slot. For each block, in one step:
//
//   contribute   everybody copies its block into its slot and publishes it
//   reduce       when all have, each member combines its share of the block, out of all slots, in rank order,
//                into its own slot, over its own contribution to that share, which nobody else reads; and
//                publishes again
//   collect      when all have, everybody (or the root) copies everybody's share out of their slots
//
// Blocks overlap: a member contributes as far ahead as slots are free. What is under way stays in the caches.
// With the order of ranks fixed in every share, the result is the same bits on everybody, every time.
#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

constexpr std::uint64_t kContributed = 1;
constexpr std::uint64_t kReduced = 2;

// A member's share of a block: whole lines of the cache, where elements allow it.
Slice share_of(const Context& c, const Operation& operation, std::uint32_t member, std::size_t bytes) {
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const std::size_t grain = 64 % element_bytes == 0 ? 64 : element_bytes;
    const std::size_t grains = (bytes + grain - 1) / grain;
    const std::size_t begin = std::min(grains * member / c.size * grain, bytes);
    return {begin, std::min(grains * (member + 1) / c.size * grain, bytes) - begin};
}

// The own share is combined straight from the input.
bool contribute(Context& c, const Operation& operation, const Blocks& blocks) {
    std::uint64_t& at = c.cursor.published;
    const Step step = c.step + at;
    if (at == blocks.count || !c.rings.may_write_slot(step)) return false;
    const Slice block = blocks.at(at), own = share_of(c, operation, c.self, block.bytes);
    const std::size_t after = own.offset + own.bytes;
    std::byte* slot = c.rings.slot(c.self, step);
    std::memcpy(slot, operation.input + block.offset, own.offset);
    std::memcpy(slot + after, operation.input + block.offset + after, block.bytes - after);
    c.rings.publish(step, operation.kind, false, kContributed, operation.bytes);
    ++at;
    c.count_step(false);
    return true;
}

bool reduce_share(Context& c, const Operation& operation, const Blocks& blocks) {
    std::uint64_t& at = c.cursor.reduced;
    if (at == c.cursor.published) return false;
    const Step step = c.step + at;
    for (std::uint32_t& next = c.cursor.next_seen; next < c.size; ++next)
        if (c.rings.look(next, step, operation.kind, operation.bytes) == 0) return false;
    c.cursor.next_seen = 0;
    const Slice block = blocks.at(at), own = share_of(c, operation, c.self, block.bytes);
    std::byte* result = c.rings.slot(c.self, step) + own.offset;
    for (std::uint32_t member = 0; member < c.size && own.bytes > 0; ++member) {
        const std::byte* from =
            (member == c.self ? operation.input + block.offset : c.rings.slot(member, step)) + own.offset;
        if (member == 0)
            std::memcpy(result, from, own.bytes);
        else
            operation.combiner(result, from, own.bytes);
    }
    c.rings.publish(step, operation.kind, true, kReduced);
    ++at;
    if (operation.kind == Kind::reduce && operation.root != c.self) c.rings.leave(step);
    return true;
}

bool collect_shares(Context& c, Operation& operation, const Blocks& blocks) {
    Cursor& at = c.cursor;
    if (at.gathered == at.reduced) return false;
    const Step step = c.step + at.gathered;
    const Slice block = blocks.at(at.gathered);
    bool moved = false;
    for (; at.next < c.size; ++at.next, moved = true) {
        if (!Word::final(c.rings.look(at.next, step, operation.kind))) {
            c.rings.await(at.next);
            return moved;
        }
        const Slice share = share_of(c, operation, at.next, block.bytes);
        copy_bytes(operation.buffer + block.offset + share.offset, c.rings.slot(at.next, step) + share.offset,
                   share.bytes);
    }
    return c.leave_gathered();
}

}  // namespace

Advance reduce_shares(Context& c, Operation& operation) {
    const Blocks blocks(c, operation);
    const bool collects = operation.kind == Kind::allreduce || operation.root == c.self;
    return pipeline(c, blocks.count, [&] {
        bool moved = contribute(c, operation, blocks);
        moved |= reduce_share(c, operation, blocks);
        if (collects) return collect_shares(c, operation, blocks) || moved;
        c.cursor.gathered = c.cursor.reduced;
        return moved;
    });
}

}  // namespace mcastcoll::host
