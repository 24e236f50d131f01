// Reductions that do not fit beside a flag, or into a slot.
#include <algorithm>

#include "host/collectives.h"

namespace mcastcoll::host {

// Larger reductions: each member combines a share of the vector for all.
//
// The vector is divided into blocks of a slot. For each block, in one step:
//
//   contribute   each member copies its block into its slot and publishes it
//   reduce       when all have, each member combines its share of the block out of the slots, in rank order,
//                into its own slot, over its own contribution to that share, which no other member reads; and
//                publishes again
//   collect      when all have, every member (or the root) copies all shares out of the slots
//
// Blocks overlap: a member contributes as far ahead as slots are free, and the blocks in flight stay in the
// caches. The order of ranks is fixed in every share, so the result has the same bits on all members, every
// time.
namespace {

constexpr std::uint64_t kContributed = 1;
constexpr std::uint64_t kReduced = 2;

// A member's share of a block: whole cache lines, if the element size allows it. A reduce's root takes the
// whole block in a team of two, since copying the other's share takes as long, and when members have no cores
// of their own.
reduce::Slice share_of(const Context& c, const Operation& operation, std::uint32_t member,
                       std::size_t bytes) {
    if (operation.kind == Kind::reduce && (c.bounds.crowded || c.size == 2))
        return {0, member == operation.root ? bytes : 0};
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const std::size_t grain = 64 % element_bytes == 0 ? 64 : element_bytes;
    const std::size_t grains = (bytes + grain - 1) / grain;
    const std::size_t begin = std::min(grains * member / c.size * grain, bytes);
    return {begin, std::min(grains * (member + 1) / c.size * grain, bytes) - begin};
}

// The root of a reduce combines its share directly in the result, which only the root needs. Two inputs are
// combined at once, one of which may be the result; a third input would be overwritten too early.
bool keeps_share(const Context& c, const Operation& operation) {
    const bool roots = operation.kind == Kind::reduce && operation.root == c.self;
    return roots && (operation.input != operation.buffer || c.self < 2);
}

// Publishes the block without the own share, which is combined directly from the input.
bool contribute(Context& c, const Operation& operation, const Blocks& blocks) {
    std::uint64_t& at = c.cursor.published;
    const Step step = c.step + at;
    if (at == blocks.count || !c.rings.may_write_slot(step)) return false;
    const reduce::Slice block = blocks.at(at), own = share_of(c, operation, c.self, block.bytes);
    const std::size_t after = own.offset + own.bytes;
    std::byte* slot = c.rings.slot(c.self, step);
    std::memcpy(slot, operation.input + block.offset, own.offset);
    std::memcpy(slot + after, operation.input + block.offset + after, block.bytes - after);
    c.rings.publish(step, operation.kind, false, kContributed, operation.bytes);
    ++at;
    return true;
}

// Combines this member's share in the order of ranks, in parts so small that the result stays in the nearest
// cache.
void combine_share(const Context& c, const Operation& operation, const reduce::Slice& block,
                   const reduce::Slice& own, Step step) {
    constexpr std::size_t kNear = 8192;
    std::byte* result =
        keeps_share(c, operation) ? operation.buffer + block.offset : c.rings.slot(c.self, step);
    const auto part = [&](std::uint32_t member) {
        return member == c.self ? operation.input + block.offset : c.rings.slot(member, step);
    };
    if (c.size == 1) return copy_bytes(result + own.offset, part(0) + own.offset, own.bytes);
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const std::size_t max = std::max<std::size_t>(kNear / element_bytes, 1) * element_bytes;
    for (std::size_t at = own.offset, end = at + own.bytes; at < end; at += max) {
        const std::size_t bytes = std::min(max, end - at);
        operation.combiner(result + at, part(0) + at, part(1) + at, bytes);
        for (std::uint32_t member = 2; member < c.size; ++member)
            operation.combiner(result + at, part(member) + at, bytes);
    }
}

bool reduce_share(Context& c, const Operation& operation, const Blocks& blocks) {
    std::uint64_t& at = c.cursor.reduced;
    if (at == c.cursor.published) return false;
    const Step step = c.step + at;
    const reduce::Slice block = blocks.at(at), own = share_of(c, operation, c.self, block.bytes);
    // In large teams some members have no share and do not wait.
    for (std::uint32_t& next = c.cursor.next_seen; next < c.size && own.bytes > 0; ++next)
        if (c.rings.look(next, step, operation.kind, operation.bytes) == 0) return false;
    c.cursor.next_seen = 0;
    if (own.bytes > 0) combine_share(c, operation, block, own, step);
    c.rings.publish(step, operation.kind, true, kReduced);
    ++at;
    if (operation.kind == Kind::reduce && operation.root != c.self) c.rings.leave(step);
    return true;
}

bool collect_shares(Context& c, Operation& operation, const Blocks& blocks) {
    Cursor& at = c.cursor;
    if (at.gathered == at.reduced) return false;
    const Step step = c.step + at.gathered;
    const reduce::Slice block = blocks.at(at.gathered);
    return read_each(c, c.size, [&](std::uint32_t member) {
        const reduce::Slice share = share_of(c, operation, member, block.bytes);
        if (share.bytes == 0 || (member == c.self && keeps_share(c, operation))) return true;
        if (!Word::final(c.rings.look(member, step, operation.kind))) return c.rings.await(member), false;
        copy_bytes(operation.buffer + block.offset + share.offset, c.rings.slot(member, step) + share.offset,
                   share.bytes);
        return true;
    });
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

// Larger reductions of which each member keeps its slice, through slots.
//
// A step carries a piece of every member's slice, which gives every member work in every step: each member
// copies these pieces of its input into its slot; after that, each combines its own piece, in rank order, out
// of the slots, into its result. Steps overlap as far as slots are free.
//
// The result may overlap the input: a step's piece of the result overwrites that step's piece of the first
// slice, which is the longest slice, and was published before.
namespace {

// The division of the vector into steps.
struct Deal {
    std::size_t elements, element_bytes, piece_bytes;
    std::uint32_t members, at_once, groups;  // at_once: members with a piece in one step
    std::uint64_t steps;

    Deal(const Operation& operation, std::uint32_t size, std::size_t slot_bytes)
        : elements(operation.bytes / operation.combiner.element_bytes),
          element_bytes(operation.combiner.element_bytes),
          members(size) {
        const std::size_t in_slot = slot_bytes / element_bytes;
        // Huge elements in large teams: not all members have a piece in every step.
        at_once = static_cast<std::uint32_t>(std::min<std::size_t>(members, in_slot));
        groups = (members + at_once - 1) / at_once;
        piece_bytes = in_slot / at_once * element_bytes;
        steps = (slice(0).bytes + piece_bytes - 1) / piece_bytes * groups;
    }
    reduce::Slice slice(std::uint32_t member) const {
        return reduce::slice_of(member, members, elements, element_bytes);
    }
    // A member's piece in a step, as part of the vector; empty if it has none.
    reduce::Slice piece(std::uint32_t member, std::uint64_t at) const {
        const reduce::Slice whole = slice(member);
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
        const reduce::Slice piece = deal.piece(member, at);
        if (member != c.self)
            copy_bytes(to + (member - first) * deal.piece_bytes, operation.input + piece.offset, piece.bytes);
    }
    c.rings.publish(step, Kind::reduce_scatter, true, 0, operation.bytes);
    ++c.cursor.published;
    return true;
}

bool combine_pieces(Context& c, Operation& operation, const Deal& deal) {
    const std::uint64_t at = c.cursor.gathered;
    if (at == c.cursor.published) return false;
    const Step step = c.step + at;
    const reduce::Slice piece = deal.piece(c.self, at);
    const std::size_t place = c.self % deal.at_once * deal.piece_bytes;
    std::byte* to = operation.buffer + at / deal.groups * deal.piece_bytes;
    return read_each(c, piece.bytes > 0 ? c.size : 0, [&](std::uint32_t member) {
        if (c.rings.look(member, step, Kind::reduce_scatter, operation.bytes) == 0) return false;
        const std::byte* from =
            member == c.self ? operation.input + piece.offset : c.rings.slot(member, step) + place;
        combine_next(operation, member, to, from, piece.bytes);
        return true;
    });
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
