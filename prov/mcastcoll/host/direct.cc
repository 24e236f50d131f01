// Large blocks, straight between memories: whoever needs a block copies it out of its owner's input.
//
// One step. Members whose input others read offer its address, everybody copies what it needs, leaves the
// step, and waits until all who read from it have left, too: only then may its input change again. Members
// begin with their right neighbour and go round, so that not all read from one at the same time.
//
//     gather       the root reads everybody's           allgather   everybody reads everybody's
//     scatter      everybody reads its block of the root's input    alltoall    of everybody's
//
// Nobody writes into another's memory here, so that an operation that fails may end at once: what was read
// from a member that had its buffer back already was read after the failure was told, which is looked at
// after each copy.
#include <algorithm>
#include <cstring>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Phase = Cursor::Phase;

std::uint64_t address_of(const std::byte* data) {
    return reinterpret_cast<std::uintptr_t>(data);
}

}  // namespace

bool publish_offer(Context& c, const Operation& operation) {
    if (!c.rings.may_write_line(c.step)) return false;
    const Offer offer{address_of(operation.input), operation.bytes, 0, address_of(operation.buffer),
                      operation.input == operation.buffer};
    std::memcpy(c.rings.line(c.self, c.step).payload.data(), &offer, sizeof offer);
    c.rings.publish(c.step, operation.kind, false, 0, operation.bytes);
    c.cursor.phase = Phase::published;
    ++c.counters.single_copies;
    return true;
}

bool see_offer(Context& c, std::uint32_t member, const Operation& operation, Offer& offer) {
    if (c.rings.look(member, c.step, operation.kind, operation.bytes) == 0) return false;
    std::memcpy(&offer, c.rings.line(member, c.step).payload.data(), sizeof offer);
    if (offer.bytes == operation.bytes) return true;
    return c.rings.mismatch(), false;
}

Way agree_on_way(Context& c, const Operation& operation) {
    Cursor& at = c.cursor;
    if (at.way != Way::undecided) return at.way;
    if (at.phase == Phase::fresh && !publish_offer(c, operation)) return Way::undecided;
    for (; at.next_seen < c.size; ++at.next_seen) {
        Offer offer;
        if (!see_offer(c, at.next_seen, operation, offer)) return Way::undecided;
        at.in_place = at.in_place || offer.in_place != 0;
    }
    c.rings.all_are_in(c.step);
    // An allreduce may be in place.
    if (!at.in_place || operation.kind == Kind::allreduce) return at.way = Way::direct;
    c.rings.leave(c.step++);
    at = {};
    return at.way = Way::slots;
}

bool pull(Context& c, std::uint32_t member, std::uint64_t from, std::byte* to, std::size_t bytes,
          std::size_t& budget) {
    std::size_t& within = c.cursor.within;
    while (within < bytes && budget > 0) {
        const std::size_t part = std::min(bytes - within, budget);
        if (!c.memories.read(member, from + within, to + within, part)) return false;
        within += part;
        budget -= part;
    }
    if (within < bytes) return false;
    within = 0;
    return true;
}

void leave_to_readers(Context& c, std::uint32_t first) {
    c.rings.leave(c.step);
    c.cursor.phase = Phase::left;
    c.cursor.next = first;
}

Advance await_readers(Context& c, std::uint32_t end) {
    for (; c.cursor.next < end; ++c.cursor.next)
        if (!c.rings.has_left(c.cursor.next, c.step)) return Advance::idle;
    return c.finish(1);
}

Advance copy_blocks(Context& c, Operation& operation) {
    Cursor& at = c.cursor;
    if (at.phase == Phase::fresh && !publish_offer(c, operation)) return Advance::idle;
    const bool gathers = operation.kind == Kind::gather, scatters = operation.kind == Kind::scatter;
    const bool is_root = (gathers || scatters) && operation.root == c.self;
    const bool from_all = gathers ? is_root : !scatters;
    const std::size_t bytes = operation.bytes;
    const std::size_t offset = scatters || operation.kind == Kind::alltoall ? c.self * bytes : 0;
    const std::uint32_t sources = from_all ? c.size : scatters ? 1 : 0;
    std::size_t budget = kCopyAtOnce;
    for (; at.phase != Phase::left && at.next < sources; ++at.next) {
        const std::uint32_t member = from_all ? (c.self + at.next) % c.size : operation.root;
        std::byte* to = operation.buffer + (from_all ? member * bytes : 0);
        if (member == c.self) {
            copy_bytes(to, operation.input + offset, bytes);
            continue;
        }
        if (budget == 0) return Advance::moved;
        Offer offer;
        if (!see_offer(c, member, operation, offer)) return moved_or_idle(budget < kCopyAtOnce);
        if (!pull(c, member, offer.address + offset, to, bytes, budget))
            return moved_or_idle(c.rings.failure() == 0);
    }
    // Who read from this member: everybody, the root, or nobody.
    const bool by_root = gathers && !is_root, by_nobody = gathers ? is_root : scatters && !is_root;
    if (at.phase != Phase::left) leave_to_readers(c, by_root ? operation.root : 0);
    return await_readers(c, by_nobody ? 0 : by_root ? operation.root + 1 : c.size);
}

}  // namespace mcastcoll::host
