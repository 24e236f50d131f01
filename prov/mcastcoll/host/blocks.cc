// Block operations through slots: gather and allgather, scatter, alltoall.
#include <algorithm>

#include "host/collectives.h"

namespace mcastcoll::host {

// Gather and allgather in several steps: each member divides its block into slots and publishes as far ahead
// as slots are free. A gather's root publishes no data, and its peers do not wait for each other.
namespace {

bool send_block(Context& c, const Operation& operation, const Blocks& blocks, bool leaves) {
    std::uint64_t& at = c.cursor.published;
    const Step step = c.step + at;
    if (at == blocks.count || !c.rings.may_write_slot(step)) return false;
    const auto [offset, bytes] = blocks.at(at);
    copy_bytes(c.rings.slot(c.self, step), operation.input + offset, bytes);
    c.rings.publish(step, operation.kind, true, bytes, operation.bytes);
    ++at;
    if (leaves) c.rings.leave(step);
    return true;
}

// Copies the available blocks of the current step; returns true if there was any.
bool gather_block(Context& c, Operation& operation, const Blocks& blocks) {
    Cursor& at = c.cursor;
    if (at.gathered == at.published) return false;
    const Step step = c.step + at.gathered;
    const reduce::Slice block = blocks.at(at.gathered);
    return read_each(c, c.size, [&](std::uint32_t member) {
        const bool own = member == c.self;
        if (!own && c.rings.look(member, step, operation.kind, operation.bytes) == 0) return false;
        copy_bytes(operation.buffer + member * operation.bytes + block.offset,
                   own ? operation.input + block.offset : c.rings.slot(member, step), block.bytes);
        return true;
    });
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

// Scatter: the root publishes all blocks.
//
// Small blocks are beside the flag, or in the root's slot, in one step. Larger blocks are published piece by
// piece, each member's piece in *that member's* slot of the step, because other members do not use their
// slots during a scatter. The root announces the number of available pieces, so that the first members need
// not wait for the last piece.
namespace {

// From this piece size on, announcing each piece costs less than the members' waiting.
constexpr std::size_t kAnnounceFrom = 2048;

// Location of a step's blocks: side by side in the root's line or slot, or each in its receiver's slot.
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
        if (!own && !layout.together && bytes >= kAnnounceFrom)
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
    }
    return c.cursor.published == steps ? c.finish(steps) : moved_or_idle(moved);
}

// Alltoall through lines or slots: members meet in pairs, like players in the rounds of a tournament.
//
// In each round the partner relation is symmetric (circle method: one member keeps its place and the others
// rotate). With an odd number of members one member has no partner in each round. A member publishes its
// block for the partner before it reads the partner's block into the place of its own, so input and result
// may be the same buffer without extra cost.
//
// A step carries the blocks of as many rounds as fit into a slot (all if possible), or a piece of one round's
// block.
namespace {

std::uint32_t rounds_of(std::uint32_t members) {
    return members % 2 == 1 ? members : members - 1;
}

// The partner of a member in a round, or the member itself if it has no partner.
std::uint32_t partner_of(std::uint32_t member, std::uint32_t round, std::uint32_t members) {
    const std::uint32_t moving = rounds_of(members);
    if (member == moving) return round * ((moving + 1) / 2) % moving;
    const std::uint32_t partner = round >= member ? round - member : round + moving - member;
    return partner == member && members % 2 == 0 ? moving : partner;
}

// Rounds and pieces, and their division into steps.
struct Meetings {
    std::uint32_t rounds, at_once;
    bool in_line;
    std::size_t piece_bytes;
    std::uint64_t pieces = 1, steps = 1;

    Meetings(std::size_t bytes, std::uint32_t members, std::size_t slot_bytes)
        : rounds(rounds_of(members)),
          at_once(rounds),
          in_line(bytes * rounds <= kInlineBytes),
          piece_bytes(std::min(bytes, slot_bytes)) {
        if (bytes * rounds <= slot_bytes) return;
        at_once = static_cast<std::uint32_t>(std::max<std::size_t>(slot_bytes / bytes, 1));
        pieces = (bytes + slot_bytes - 1) / slot_bytes;
        steps = (rounds + at_once - 1) / at_once * pieces;
    }
    std::uint32_t first_round(std::uint64_t at) const {
        return static_cast<std::uint32_t>(at / pieces * at_once);
    }
    std::size_t offset(std::uint64_t at) const { return at % pieces * piece_bytes; }
};

bool send_to_partners(Context& c, const Operation& operation, const Meetings& all) {
    const std::uint64_t at = c.cursor.published;
    const Step step = c.step + at;
    if (at == all.steps || !c.rings.may_write(step, all.in_line)) return false;
    std::byte* to = c.rings.place(c.self, step, all.in_line);
    const std::uint32_t first = all.first_round(at);
    const std::size_t offset = all.offset(at);
    const std::size_t bytes = std::min(all.piece_bytes, operation.bytes - offset);
    for (std::uint32_t i = 0; i < all.at_once && first + i < all.rounds; ++i) {
        const std::uint32_t partner = partner_of(c.self, first + i, c.size);
        if (partner != c.self)
            copy_bytes(to + i * bytes, operation.input + partner * operation.bytes + offset, bytes);
    }
    c.rings.publish(step, Kind::alltoall, true, bytes, operation.bytes);
    ++c.cursor.published;
    return true;
}

bool take_from_partners(Context& c, Operation& operation, const Meetings& all) {
    const std::uint64_t at = c.cursor.gathered;
    if (at == c.cursor.published) return false;
    const Step step = c.step + at;
    const std::uint32_t first = all.first_round(at);
    const std::size_t offset = all.offset(at);
    const std::size_t bytes = std::min(all.piece_bytes, operation.bytes - offset);
    return read_each(c, std::min(all.at_once, all.rounds - first), [&](std::uint32_t i) {
        const std::uint32_t partner = partner_of(c.self, first + i, c.size);
        if (partner == c.self) return true;
        if (c.rings.look(partner, step, Kind::alltoall, operation.bytes) == 0) return false;
        copy_bytes(operation.buffer + partner * operation.bytes + offset,
                   c.rings.place(partner, step, all.in_line) + i * bytes, bytes);
        return true;
    });
}

}  // namespace

Advance alltoall(Context& c, Operation& operation) {
    const Meetings all(operation.bytes, c.size, c.rings.slot_bytes());
    if (c.cursor.phase == Cursor::Phase::fresh) {
        const std::size_t own = c.self * operation.bytes;
        copy_bytes(operation.buffer + own, operation.input + own, operation.bytes);
        c.cursor.phase = Cursor::Phase::published;
    }
    const Step first = c.step;
    const Advance outcome = pipeline(c, all.steps, [&] {
        const bool sent = send_to_partners(c, operation, all);
        return take_from_partners(c, operation, all) || sent;
    });
    if (outcome == Advance::finished && all.steps == 1) c.rings.all_are_in(first);
    return outcome;
}

}  // namespace mcastcoll::host
