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
#include <cstring>

#include "host/team.h"

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

}  // namespace

Team::Meetings Team::meetings_of(const Operation& operation) const {
    Meetings all;
    all.rounds = rounds_of(size_);
    all.in_line = operation.bytes * all.rounds <= kInlineBytes;
    all.piece_bytes = std::min(operation.bytes, slot_bytes_);
    all.at_once = all.rounds;
    if (operation.bytes * all.rounds <= slot_bytes_) return all;
    all.at_once = static_cast<std::uint32_t>(std::max<std::size_t>(slot_bytes_ / operation.bytes, 1));
    all.pieces = (operation.bytes + slot_bytes_ - 1) / slot_bytes_;
    all.steps = (all.rounds + all.at_once - 1) / all.at_once * all.pieces;
    return all;
}

Team::Advance Team::alltoall(Operation& operation) {
    const Meetings all = meetings_of(operation);
    const std::size_t own = self_ * operation.bytes;
    if (!course_.begun) {
        if (operation.input != operation.buffer && operation.bytes > 0)
            std::memcpy(operation.buffer + own, operation.input + own, operation.bytes);
        course_.begun = true;
    }
    bool moved = false, again = true;
    while (again) {
        again = send_to_partners(operation, all);
        again |= take_from_partners(operation, all);
        moved |= again;
        if (course_.gathered == all.steps) {
            if (all.steps == 1) watermark_ = std::max(watermark_, step_);
            return finish(operation, all.steps);
        }
    }
    return moved ? Advance::moved : Advance::idle;
}

bool Team::send_to_partners(const Operation& operation, const Meetings& all) {
    const std::uint64_t at = course_.published;
    const Step step = step_ + at;
    if (at == all.steps || !may_write(step, all.in_line ? kLines : slots_)) return false;
    Line& line = line_of(self_, step);
    std::byte* to = all.in_line ? line.payload.data() : slot_of(self_, step);
    const auto first = static_cast<std::uint32_t>(at / all.pieces * all.at_once);
    const std::size_t offset = at % all.pieces * all.piece_bytes;
    const std::size_t bytes = std::min(all.piece_bytes, operation.bytes - offset);
    for (std::uint32_t i = 0; i < all.at_once && first + i < all.rounds && bytes > 0; ++i) {
        const std::uint32_t partner = partner_of(self_, first + i, size_);
        if (partner != self_)
            std::memcpy(to + i * bytes, operation.input + partner * operation.bytes + offset, bytes);
    }
    line.extent.store(operation.bytes, std::memory_order_relaxed);
    publish(step, Kind::alltoall, true, bytes);
    ++course_.published;
    ++(all.in_line ? counters_.inline_steps : counters_.slot_steps);
    return true;
}

bool Team::take_from_partners(Operation& operation, const Meetings& all) {
    const std::uint64_t at = course_.gathered;
    if (at == course_.published) return false;
    const Step step = step_ + at;
    const auto first = static_cast<std::uint32_t>(at / all.pieces * all.at_once);
    const std::size_t offset = at % all.pieces * all.piece_bytes;
    const std::size_t bytes = std::min(all.piece_bytes, operation.bytes - offset);
    bool moved = false;
    for (; course_.next < all.at_once && first + course_.next < all.rounds; ++course_.next, moved = true) {
        const std::uint32_t partner = partner_of(self_, first + course_.next, size_);
        if (partner == self_) continue;
        if (look(partner, step, Kind::alltoall) == 0) return moved;
        const Line& line = line_of(partner, step);
        if (line.extent.load(std::memory_order_relaxed) != operation.bytes) return mismatch(), moved;
        const std::byte* from = all.in_line ? line.payload.data() : slot_of(partner, step);
        if (bytes > 0)
            std::memcpy(operation.buffer + partner * operation.bytes + offset, from + course_.next * bytes,
                        bytes);
    }
    leave(step);
    course_.next = 0;
    ++course_.gathered;
    return true;
}

}  // namespace mcastcoll::host
