// Scatter: the root publishes everybody's block.
//
// What fits lies beside the flag, or in the root's own slot, all in one step. Larger blocks go piece by
// piece, each member's into *that member's* slot of the step: nobody else has a use for his during a scatter.
// The root says how many members' pieces are there, so that the first ones need not wait for the last.
#include <algorithm>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

// From so many bytes on telling each member that its piece is there costs less than its waiting.
constexpr std::size_t kTellFrom = 2048;

// Where a step's blocks lie: side by side in the root's line or slot, or each in its receiver's slot.
struct Layout {
    bool in_line, together;

    std::byte* place(const Context& c, const Operation& operation, std::uint32_t member, Step step,
                     std::size_t bytes) const {
        if (!together) return c.rings.slot(member, step);
        return c.rings.place(operation.root, step, in_line) + member * bytes;
    }
};

void fill_blocks(Context& c, const Operation& operation, std::size_t offset, std::size_t bytes, Step step,
                 const Layout& layout) {
    c.rings.line(c.self, step).extent.store(operation.bytes, std::memory_order_relaxed);
    for (std::uint32_t member = 0; member < c.size && bytes > 0; ++member) {
        const bool own = member == c.self;
        copy_bytes(own ? operation.buffer + offset : layout.place(c, operation, member, step, bytes),
                   operation.input + member * operation.bytes + offset, bytes);
        if (!own && !layout.together && bytes >= kTellFrom)
            c.rings.publish(step, Kind::scatter, false, member + 1);
    }
    c.rings.publish(step, Kind::scatter, true, c.size);
}

bool take_block(Context& c, Operation& operation, std::size_t offset, std::size_t bytes, Step step,
                const Layout& layout) {
    const std::uint64_t word = c.rings.look(operation.root, step, Kind::scatter, operation.bytes);
    if (word == 0) return false;
    if (Word::count(word) <= c.self) {
        c.rings.await(operation.root);
        return false;
    }
    copy_bytes(operation.buffer + offset, layout.place(c, operation, c.self, step, bytes), bytes);
    return true;
}

}  // namespace

Advance scatter(Context& c, Operation& operation) {
    const std::size_t slot_bytes = c.rings.slot_bytes();
    const bool in_line = operation.bytes * c.size <= kInlineBytes;
    const Layout layout{in_line, in_line || operation.bytes * c.size <= slot_bytes};
    const std::size_t piece_bytes = layout.together ? operation.bytes : slot_bytes;
    const std::uint64_t steps = layout.together ? 1 : (operation.bytes + slot_bytes - 1) / slot_bytes;
    bool moved = false;
    for (std::uint64_t& at = c.cursor.published; at < steps; ++at, moved = true) {
        const Step step = c.step + at;
        const std::size_t offset = at * piece_bytes;
        const std::size_t bytes = std::min(operation.bytes - offset, piece_bytes);
        if (operation.root == c.self) {
            if (!c.rings.may_write(step, in_line)) break;
            fill_blocks(c, operation, offset, bytes, step, layout);
        } else {
            if (!take_block(c, operation, offset, bytes, step, layout)) break;
        }
        c.rings.leave(step);
        c.count_step(in_line);
    }
    return c.cursor.published == steps ? c.finish(steps) : moved_or_idle(moved);
}

}  // namespace mcastcoll::host
