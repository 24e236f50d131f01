// Larger reductions of which each member keeps its slice, through slots.
//
// A step carries a piece of everybody's slice, so that all have something to combine in every step: everybody
// copies those pieces of its input into its slot; when all have, each combines its own, in rank order, out of
// all slots, into its result. Steps overlap as far as slots are free.
//
// The result may lie where the input was: what a step's piece of the result overwrites is that step's piece
// of the first slice, which is the longest, and was published before.
#include <algorithm>
#include <cstring>

#include "host/team.h"
#include "reduce/slices.h"

namespace mcastcoll::host {

Team::Deal Team::deal_of(const Operation& operation) const {
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const std::size_t in_slot = slot_bytes_ / element_bytes;
    Deal deal;
    // Huge elements among very many members: not all have a piece in every step.
    deal.at_once = static_cast<std::uint32_t>(std::min<std::size_t>(size_, in_slot));
    deal.groups = (size_ + deal.at_once - 1) / deal.at_once;
    deal.piece_bytes = in_slot / deal.at_once * element_bytes;
    const std::size_t longest = slice_of(0, size_, operation.bytes / element_bytes, element_bytes).bytes;
    deal.steps = (longest + deal.piece_bytes - 1) / deal.piece_bytes * deal.groups;
    return deal;
}

// A member's piece in a step, as part of the vector; empty when it has none.
Team::Share Team::piece_of(std::uint32_t member, const Operation& operation, const Deal& deal,
                           std::uint64_t at) const {
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const Slice slice = slice_of(member, size_, operation.bytes / element_bytes, element_bytes);
    const std::size_t before = at / deal.groups * deal.piece_bytes;
    if (member / deal.at_once != at % deal.groups || before >= slice.bytes) return {};
    return {slice.offset + before, std::min(deal.piece_bytes, slice.bytes - before)};
}

Team::Advance Team::reduce_scatter(Operation& operation) {
    const Deal deal = deal_of(operation);
    bool moved = false, again = true;
    while (again) {
        again = contribute_pieces(operation, deal);
        again |= combine_pieces(operation, deal);
        moved |= again;
        if (course_.gathered == deal.steps) return finish(operation, deal.steps);
    }
    return moved ? Advance::moved : Advance::idle;
}

bool Team::contribute_pieces(const Operation& operation, const Deal& deal) {
    const std::uint64_t at = course_.published;
    const Step step = step_ + at;
    if (at == deal.steps || !may_write(step, slots_)) return false;
    const auto first = static_cast<std::uint32_t>(at % deal.groups * deal.at_once);
    std::byte* to = slot_of(self_, step);
    for (std::uint32_t member = first; member < std::min(first + deal.at_once, size_); ++member) {
        const Share piece = piece_of(member, operation, deal, at);
        if (member != self_ && piece.bytes > 0)
            std::memcpy(to + (member - first) * deal.piece_bytes, operation.input + piece.begin, piece.bytes);
    }
    line_of(self_, step).extent.store(operation.bytes, std::memory_order_relaxed);
    publish(step, Kind::reduce_scatter, true, 0);
    ++course_.published;
    ++counters_.slot_steps;
    return true;
}

bool Team::combine_pieces(Operation& operation, const Deal& deal) {
    const std::uint64_t at = course_.gathered;
    if (at == course_.published) return false;
    const Step step = step_ + at;
    const Share piece = piece_of(self_, operation, deal, at);
    const std::size_t place = self_ % deal.at_once * deal.piece_bytes;
    std::byte* to = operation.buffer + at / deal.groups * deal.piece_bytes;
    bool moved = false;
    for (; course_.next < size_ && piece.bytes > 0; ++course_.next, moved = true) {
        const std::uint32_t member = course_.next;
        if (look(member, step, Kind::reduce_scatter) == 0) return moved;
        if (line_of(member, step).extent.load(std::memory_order_relaxed) != operation.bytes)
            return mismatch(), moved;
        const std::byte* from =
            member == self_ ? operation.input + piece.begin : slot_of(member, step) + place;
        if (member != 0)
            operation.combiner(to, from, piece.bytes);
        else if (from != to)
            std::memcpy(to, from, piece.bytes);
    }
    leave(step);
    course_.next = 0;
    ++course_.gathered;
    return true;
}

}  // namespace mcastcoll::host
