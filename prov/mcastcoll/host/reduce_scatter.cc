// Larger reductions of which each member keeps its slice, through slots.
//
// A step carries a piece of everybody's slice, so that all have something to combine in every step: everybody
// copies those pieces of its input into its slot; when all have, each combines its own, in rank order, out of
// all slots, into its result. Steps overlap as far as slots are free.
//
// The result may lie where the input was: what a step's piece of the result overwrites is that step's piece
// of the first slice, which is the longest, and was published before.
#include <algorithm>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

// The vector, dealt out to steps.
struct Deal {
    std::size_t elements, element_bytes, piece_bytes;
    std::uint32_t members, at_once, groups;  // members with a piece in one step
    std::uint64_t steps;

    Deal(const Operation& operation, std::uint32_t size, std::size_t slot_bytes)
        : elements(operation.bytes / operation.combiner.element_bytes),
          element_bytes(operation.combiner.element_bytes),
          members(size) {
        const std::size_t in_slot = slot_bytes / element_bytes;
        // Huge elements among very many members: not all have a piece in every step.
        at_once = static_cast<std::uint32_t>(std::min<std::size_t>(members, in_slot));
        groups = (members + at_once - 1) / at_once;
        piece_bytes = in_slot / at_once * element_bytes;
        steps = (slice(0).bytes + piece_bytes - 1) / piece_bytes * groups;
    }
    Slice slice(std::uint32_t member) const { return slice_of(member, members, elements, element_bytes); }
    // A member's piece in a step, as part of the vector; empty when it has none.
    Slice piece(std::uint32_t member, std::uint64_t at) const {
        const Slice whole = slice(member);
        const std::size_t before = at / groups * piece_bytes;
        if (member / at_once != at % groups || before >= whole.bytes) return {};
        return {whole.offset + before, std::min(piece_bytes, whole.bytes - before)};
    }
};

bool contribute_pieces(Context& c, const Operation& operation, const Deal& deal) {
    const std::uint64_t at = c.cursor.published;
    const Step step = c.step + at;
    if (at == deal.steps || !c.rings.may_write_slot(step)) return false;
    const auto first = static_cast<std::uint32_t>(at % deal.groups * deal.at_once);
    std::byte* to = c.rings.slot(c.self, step);
    for (std::uint32_t member = first; member < std::min(first + deal.at_once, c.size); ++member) {
        const Slice piece = deal.piece(member, at);
        if (member != c.self)
            copy_bytes(to + (member - first) * deal.piece_bytes, operation.input + piece.offset, piece.bytes);
    }
    c.rings.publish(step, Kind::reduce_scatter, true, 0, operation.bytes);
    ++c.cursor.published;
    c.count_step(false);
    return true;
}

bool combine_pieces(Context& c, Operation& operation, const Deal& deal) {
    Cursor& cursor = c.cursor;
    const std::uint64_t at = cursor.gathered;
    if (at == cursor.published) return false;
    const Step step = c.step + at;
    const Slice piece = deal.piece(c.self, at);
    const std::size_t place = c.self % deal.at_once * deal.piece_bytes;
    std::byte* to = operation.buffer + at / deal.groups * deal.piece_bytes;
    bool moved = false;
    for (; cursor.next < c.size && piece.bytes > 0; ++cursor.next, moved = true) {
        const std::uint32_t member = cursor.next;
        if (c.rings.look(member, step, Kind::reduce_scatter, operation.bytes) == 0) return moved;
        const std::byte* from =
            member == c.self ? operation.input + piece.offset : c.rings.slot(member, step) + place;
        if (member != 0)
            operation.combiner(to, from, piece.bytes);
        else
            copy_bytes(to, from, piece.bytes);
    }
    return c.leave_gathered();
}

}  // namespace

Advance reduce_scatter(Context& c, Operation& operation) {
    const Deal deal(operation, c.size, c.rings.slot_bytes());
    return pipeline(c, deal.steps, [&] {
        const bool sent = contribute_pieces(c, operation, deal);
        return combine_pieces(c, operation, deal) || sent;
    });
}

}  // namespace mcastcoll::host
