// Alltoall through lines or slots: members meet in pairs, as in the rounds of a tournament.
//
// In a round everybody has one partner, and is that one's partner: the circle method, in which one member
// stays where it is and the others move on. An odd number of members leaves one without a partner in each
// round. A member publishes its block for the partner before it reads the partner's, which comes to lie where
// the own one was when input and result are the same buffer: so that costs nothing.
//
// A step carries the blocks of as many rounds as fit into a slot, of all where everything fits; or a piece of
// one round's block.
#include <algorithm>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

std::uint32_t rounds_of(std::uint32_t members) {
    return members % 2 == 1 ? members : members - 1;
}

// Whom a member meets; itself, when nobody.
std::uint32_t partner_of(std::uint32_t member, std::uint32_t round, std::uint32_t members) {
    const std::uint32_t moving = rounds_of(members);
    if (member == moving) return round * ((moving + 1) / 2) % moving;
    const std::uint32_t partner = round >= member ? round - member : round + moving - member;
    return partner == member && members % 2 == 0 ? moving : partner;
}

// Rounds and pieces, and how they are cut into steps.
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
    c.count_step(all.in_line);
    return true;
}

bool take_from_partners(Context& c, Operation& operation, const Meetings& all) {
    Cursor& cursor = c.cursor;
    const std::uint64_t at = cursor.gathered;
    if (at == cursor.published) return false;
    const Step step = c.step + at;
    const std::uint32_t first = all.first_round(at);
    const std::size_t offset = all.offset(at);
    const std::size_t bytes = std::min(all.piece_bytes, operation.bytes - offset);
    bool moved = false;
    for (; cursor.next < all.at_once && first + cursor.next < all.rounds; ++cursor.next, moved = true) {
        const std::uint32_t partner = partner_of(c.self, first + cursor.next, c.size);
        if (partner == c.self) continue;
        if (c.rings.look(partner, step, Kind::alltoall, operation.bytes) == 0) return moved;
        copy_bytes(operation.buffer + partner * operation.bytes + offset,
                   c.rings.place(partner, step, all.in_line) + cursor.next * bytes, bytes);
    }
    return c.leave_gathered();
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
