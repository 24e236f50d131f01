// Gather and allgather in several steps: each member cuts its part into slots and publishes ahead as far as
// slots are free. A gather's root publishes nothing, and nobody else waits for anybody.
#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

bool send_block(Context& c, const Operation& operation, const Blocks& blocks, bool leaves) {
    std::uint64_t& at = c.cursor.published;
    const Step step = c.step + at;
    if (at == blocks.count || !c.rings.may_write_slot(step)) return false;
    const auto [offset, bytes] = blocks.at(at);
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
    const auto [offset, bytes] = blocks.at(at.gathered);
    bool moved = false;
    for (; at.next < c.size; ++at.next, moved = true) {
        const bool own = at.next == c.self;
        if (!own && c.rings.look(at.next, step, operation.kind, operation.bytes) == 0) return moved;
        copy_bytes(operation.buffer + at.next * operation.bytes + offset,
                   own ? operation.input + offset : c.rings.slot(at.next, step), bytes);
    }
    return c.leave_gathered();
}

}  // namespace

Advance gather_blocks(Context& c, Operation& operation) {
    const Blocks blocks(c, operation);
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
