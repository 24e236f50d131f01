// A message from the root's buffer to everybody's, by the way that its length asks for.
//
// Up to kInlineBytes lie beside the flag (one_step.cc).
//
// Through slots, a step carries as much as *everybody's* slots of that step hold: nobody else has a use for
// his during a broadcast. The root says after each piece how much there is, and readers follow. Whether slots
// are free is asked per step only.
//
// Straight from memory: the root tells its buffer's address, the others copy from there, and the root waits
// until all have left. `extent` is how much of it there is, which grows while the root itself is still
// receiving.
#include <algorithm>
#include <cstring>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Phase = Cursor::Phase;

// Everybody's slots of a step, one after the other, as if they were one.
struct Spread {
    std::size_t slot_bytes, capacity;

    explicit Spread(const Context& c)
        : slot_bytes(c.rings.slot_bytes()),
          capacity(std::min<std::size_t>(c.size * slot_bytes, Word::kMaxCount / slot_bytes * slot_bytes)) {}
    std::uint64_t steps_at_once() const { return std::max<std::size_t>(1, kCopyAtOnce / capacity); }

    // Calls with the place of each part between the cursor and `end`, and moves the cursor on.
    template <class Copy>
    void each_part(Context& c, Step step, std::size_t end, const Copy& copy_part) const {
        std::size_t& within = c.cursor.within;
        while (within < end) {
            const std::size_t in_slot = within % slot_bytes;
            const std::size_t part = std::min(end - within, slot_bytes - in_slot);
            std::byte* place = c.rings.slot(static_cast<std::uint32_t>(within / slot_bytes), step) + in_slot;
            within += part;
            copy_part(place, within - part, part);
        }
    }
};

Advance send_slots(Context& c, Operation& operation) {
    const Spread all(c);
    Cursor& at = c.cursor;
    bool moved = false;
    for (std::uint64_t round = 0; round < all.steps_at_once(); ++round) {
        const Step step = c.step + at.published;
        const std::size_t offset = at.published * all.capacity;
        const std::size_t bytes = std::min(all.capacity, operation.bytes - offset);
        if (at.within == 0) {
            if (!c.rings.may_write_slot(step)) break;
            c.rings.line(c.self, step).extent.store(operation.bytes, std::memory_order_relaxed);
        }
        const std::size_t there = std::min(operation.ready - std::min(operation.ready, offset), bytes);
        moved |= at.within < there;
        all.each_part(c, step, there, [&](std::byte* place, std::size_t begin, std::size_t part) {
            std::memcpy(place, operation.buffer + offset + begin, part);
            c.rings.publish(step, Kind::broadcast, begin + part == bytes, begin + part);
        });
        if (at.within < bytes) break;
        c.rings.leave(step);
        c.count_step(false);
        ++at.published;
        at.within = 0;
        if (offset + bytes == operation.bytes) return c.finish(at.published);
    }
    return moved_or_idle(moved);
}

Advance take_slots(Context& c, Operation& operation) {
    const Spread all(c);
    Cursor& at = c.cursor;
    bool moved = false;
    for (std::uint64_t round = 0; round < all.steps_at_once(); ++round) {
        const Step step = c.step + at.gathered;
        const std::size_t offset = at.gathered * all.capacity;
        const std::size_t bytes = std::min(all.capacity, operation.bytes - offset);
        const std::uint64_t word = c.rings.look(operation.root, step, Kind::broadcast, operation.bytes);
        if (word == 0) break;
        const std::size_t there = Word::count(word);
        if (there > bytes) return c.rings.mismatch(), Advance::idle;
        if (there == at.within) {
            c.rings.await(operation.root);
            break;
        }
        all.each_part(c, step, there, [&](const std::byte* place, std::size_t begin, std::size_t part) {
            std::memcpy(operation.buffer + offset + begin, place, part);
        });
        operation.arrived = offset + at.within;
        moved = true;
        if (at.within < bytes) continue;
        c.rings.leave(step);
        c.count_step(false);
        ++at.gathered;
        at.within = 0;
        if (operation.arrived == operation.bytes) return c.finish(at.gathered);
    }
    return moved_or_idle(moved);
}

Advance offer_memory(Context& c, Operation& operation) {
    Line& line = c.rings.line(c.self, c.step);
    Cursor& at = c.cursor;
    bool moved = false;
    if (at.phase == Phase::fresh) {
        if (!c.rings.may_write_line(c.step)) return Advance::idle;
        at.both = may_both_copy(c, operation) && operation.ready == operation.bytes;
        const Offer offer{reinterpret_cast<std::uintptr_t>(operation.buffer), operation.bytes, at.both};
        std::memcpy(line.payload.data(), &offer, sizeof offer);
        at.within = operation.ready;
        c.rings.publish(c.step, Kind::broadcast, true, 0, operation.ready);
        at.phase = Phase::published;
        moved = true;
    } else if (operation.ready > at.within) {
        at.within = operation.ready;
        line.extent.store(operation.ready, std::memory_order_release);
        c.rings.alarm().published();
        moved = true;
    }
    if (at.both) moved |= write_pieces(c, operation);
    for (; at.next < c.size; ++at.next)
        if (at.next != c.self && !c.rings.has_left(at.next, c.step)) return moved_or_idle(moved);
    c.rings.leave(c.step);
    ++c.counters.single_copies;
    return c.finish(1);
}

Advance take_memory(Context& c, Operation& operation) {
    const std::uint32_t root = operation.root;
    const std::uint64_t word = c.rings.look(root, c.step, Kind::broadcast);
    if (word == 0) return Advance::idle;
    const Line& line = c.rings.line(root, c.step);
    Offer offer;
    std::memcpy(&offer, line.payload.data(), sizeof offer);
    const std::size_t there = line.extent.load(std::memory_order_acquire);
    if (offer.bytes != operation.bytes || there > operation.bytes) return c.rings.mismatch(), Advance::idle;
    if (offer.both != 0 && may_both_copy(c, operation)) return read_pieces(c, operation, offer.address);
    if (Word::count(word) != 0) return c.rings.mismatch(), Advance::idle;
    if (there == operation.arrived) {
        c.rings.await(root);
        return Advance::idle;
    }
    std::size_t& arrived = operation.arrived;
    const std::size_t part = std::min(there - arrived, kCopyAtOnce);
    if (!c.memories.read(root, offer.address + arrived, operation.buffer + arrived, part))
        return Advance::idle;
    arrived += part;
    if (arrived < operation.bytes) return Advance::moved;
    c.rings.leave(c.step);
    ++c.counters.single_copies;
    return c.finish(1);
}

}  // namespace

Advance broadcast(Context& c, Operation& operation) {
    const bool sends = operation.root == c.self;
    if (operation.bytes <= kInlineBytes) return broadcast_inline(c, operation);
    if (operation.bytes < c.bounds.single_copy_from)
        return sends ? send_slots(c, operation) : take_slots(c, operation);
    return sends ? offer_memory(c, operation) : take_memory(c, operation);
}

}  // namespace mcastcoll::host
