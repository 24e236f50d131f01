// Broadcasts longer than one piece, by the algorithm that suits the length. collectives.cc has shorter ones.
//
// Through slots: a step carries as much as the slots of *all members* in that step hold, because other
// members do not use their slots during a broadcast. The root announces the available bytes after each piece,
// and readers follow. Free slots are checked once per step.
//
// Directly from memory: the root announces its buffer's address, the receivers copy from there, and the root
// waits until every receiver has left. `extent` is the valid prefix, which grows while the root itself is
// still receiving.
#include <algorithm>
#include <cstring>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Phase = Cursor::Phase;

// The members' slots in one step as one contiguous buffer.
struct Spread {
    std::size_t slot_bytes, capacity;

    explicit Spread(const Context& c)
        : slot_bytes(c.rings.slot_bytes()),
          capacity(std::min<std::size_t>(c.size * slot_bytes, Word::kMaxCount / slot_bytes * slot_bytes)) {}
    std::uint64_t steps_at_once() const { return std::max<std::size_t>(1, kCopyAtOnce / capacity); }

    // Calls copy_part for each part between the cursor and `end`, and advances the cursor.
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
        if (there > bytes || there < at.within) return c.rings.mismatch(), Advance::idle;
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
        ++at.gathered;
        at.within = 0;
        if (operation.arrived == operation.bytes) return c.finish(at.gathered);
    }
    return moved_or_idle(moved);
}

// A large broadcast between two processes with a core each: both copy.
//
// The root offers its memory as for any single copy, and announces that the whole message is valid. The
// receiver offers its own buffer in return. Each process claims the next piece from a counter (the `extent`
// of the receiver's line) when it is free: the receiver reads its pieces, the root writes its pieces. So both
// copy at full speed, even after a late arrival.
//
// No process may write into the buffer of a finished operation. While the root claims and writes, its word is
// marked busy:
//
//     root      busy = 1;  claim;  write what was claimed;  busy = 0
//     receiver  claims until no piece is left (after a failure: claims all pieces);  then waits for
//               busy == 0
//
// These accesses are sequentially consistent: a root with a claimed piece had set busy before the receiver's
// last claim, so the receiver sees the mark. Only then does the receiver's operation end, in success or
// failure; or when the root's process is dead.

constexpr std::size_t kPieceBytes = std::size_t{32} << 10;
constexpr std::uint64_t kPiecesAtOnce = 8;  // in one call of advance()
constexpr std::uint64_t kEverything = std::uint64_t{1} << 40;

struct Piece {
    std::size_t offset, bytes;  // 0: no piece is left
};

Piece claim(Line& receivers, std::size_t whole) {
    const std::uint64_t piece = receivers.extent.fetch_add(1, std::memory_order_seq_cst);
    if (piece >= (whole + kPieceBytes - 1) / kPieceBytes) return {};
    const std::size_t offset = piece * kPieceBytes;
    return {offset, std::min(kPieceBytes, whole - offset)};
}

void set_busy(Context& c, bool busy) {
    c.rings.line(c.self, c.step)
        .word.store(Word::of(c.step, static_cast<unsigned>(Kind::broadcast), true, busy ? 1 : 0),
                    std::memory_order_seq_cst);
    c.rings.alarm.published();
}

bool root_is_writing(Context& c, const Operation& operation) {
    c.rings.await(operation.root);
    return Word::count(c.rings.line(operation.root, c.step).word.load(std::memory_order_seq_cst)) != 0;
}

bool may_both_copy(const Context& c, const Operation& operation) {
    return operation.bytes >= c.bounds.both_copy_from && c.size == 2;
}

// The root's part, once the receiver is there. Returns true if there was progress.
bool write_pieces(Context& c, const Operation& operation) {
    const std::uint32_t receiver = 1 - c.self;
    Line& theirs = c.rings.line(receiver, c.step);
    if (c.cursor.claimed || !Word::is_of(theirs.word.load(std::memory_order_acquire), c.step)) return false;
    Offer to;
    std::memcpy(&to, theirs.payload.data(), sizeof to);
    if (to.bytes != operation.bytes) return c.rings.mismatch(), false;
    set_busy(c, true);
    bool moved = false;
    for (std::uint64_t turn = 0; turn < kPiecesAtOnce; ++turn) {
        const auto [offset, bytes] = claim(theirs, operation.bytes);
        c.cursor.claimed = bytes == 0;
        if (bytes == 0 || !c.memories.write(receiver, to.address + offset, operation.buffer + offset, bytes))
            break;
        moved = true;
    }
    set_busy(c, false);
    return moved;
}

// The receiver's part: offers its buffer, copies, and finishes when the root has stopped writing.
Advance read_pieces(Context& c, Operation& operation, std::uint64_t from_address) {
    Line& own = c.rings.line(c.self, c.step);
    Cursor& at = c.cursor;
    if (at.phase == Phase::fresh) {
        if (!c.rings.may_write_line(c.step)) return Advance::idle;
        const Offer offer{reinterpret_cast<std::uintptr_t>(operation.buffer), operation.bytes, 0};
        std::memcpy(own.payload.data(), &offer, sizeof offer);
        c.rings.publish(c.step, Kind::broadcast, true, 0, 0);
        at.phase = Phase::published;
    }
    for (std::uint64_t turn = 0; !at.claimed && turn < kPiecesAtOnce; ++turn) {
        const auto [offset, bytes] = claim(own, operation.bytes);
        at.claimed = bytes == 0;
        if (bytes > 0 &&
            !c.memories.read(operation.root, from_address + offset, operation.buffer + offset, bytes))
            return Advance::idle;
    }
    if (!at.claimed) return Advance::moved;
    if (root_is_writing(c, operation) || c.rings.failure() != 0) return Advance::idle;
    operation.arrived = operation.bytes;
    c.rings.leave(c.step);
    ++c.counters.both_copies;
    return c.finish(1);
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
        c.rings.alarm.published();
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
    if (offer.bytes != operation.bytes || there > operation.bytes || there < operation.arrived)
        return c.rings.mismatch(), Advance::idle;
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
    if (operation.bytes < c.bounds.single_copy_from)
        return sends ? send_slots(c, operation) : take_slots(c, operation);
    return sends ? offer_memory(c, operation) : take_memory(c, operation);
}

// Claims the remaining pieces, so the root starts no further write.
bool is_withdrawn(Context& c, const Operation& operation) {
    const bool receives =
        operation.kind == Kind::broadcast && operation.root != c.self && c.cursor.phase != Phase::fresh;
    if (!receives || !may_both_copy(c, operation)) return true;
    std::atomic<std::uint64_t>& claims = c.rings.line(c.self, c.step).extent;
    if (claims.load(std::memory_order_seq_cst) < kEverything)
        claims.fetch_add(kEverything, std::memory_order_seq_cst);
    return !root_is_writing(c, operation) || !c.rings.is_alive(operation.root);
}

}  // namespace mcastcoll::host
