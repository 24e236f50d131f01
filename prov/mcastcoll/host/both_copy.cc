// A large broadcast between two processes that have a core each: both copy.
//
// The root offers its memory as for any single copy, and says that all of it is there. The receiver offers
// its own in return. Whoever is free claims the next piece from a counter (the `extent` of the receiver's
// line): the receiver reads its pieces, the root writes its own. So either does what it can, however late it
// comes.
//
// Nobody may write into a buffer whose operation is over. While the root claims and writes, its word says
// busy:
//
//     root      busy = 1;  claim;  write what was claimed;  busy = 0
//     receiver  claims until nothing is left (or, when the team has failed, claims everything);  then waits
//     for busy == 0
//
// all sequentially consistent: a root that got a piece had set busy before the receiver's last claim, which
// therefore sees it. The receiver's operation ends, in success or failure, only then; or when the root's
// process is gone.
#include <algorithm>
#include <cstring>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{32} << 10;
constexpr std::uint64_t kPiecesAtOnce = 8;  // by one call of advance()
constexpr std::uint64_t kEverything = std::uint64_t{1} << 40;

struct Piece {
    std::size_t offset, bytes;  // none: nothing is left
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
    c.rings.alarm().published();
}

bool root_is_writing(Context& c, const Operation& operation) {
    c.rings.await(operation.root);
    return Word::count(c.rings.line(operation.root, c.step).word.load(std::memory_order_seq_cst)) != 0;
}

}  // namespace

bool may_both_copy(const Context& c, const Operation& operation) {
    return operation.bytes >= c.bounds.both_copy_from && c.size == 2;
}

// The root's part, once the receiver is there. True when something moved.
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

// The receiver's part: offers its buffer, copies, and is done when the root is not writing any more.
Advance read_pieces(Context& c, Operation& operation, std::uint64_t from_address) {
    Line& own = c.rings.line(c.self, c.step);
    Cursor& at = c.cursor;
    if (at.phase == Cursor::Phase::fresh) {
        if (!c.rings.may_write_line(c.step)) return Advance::idle;
        const Offer offer{reinterpret_cast<std::uintptr_t>(operation.buffer), operation.bytes, 0};
        std::memcpy(own.payload.data(), &offer, sizeof offer);
        c.rings.publish(c.step, Kind::broadcast, true, 0, 0);
        at.phase = Cursor::Phase::published;
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

// Claims what is left, so that the root begins nothing.
bool is_withdrawn(Context& c, const Operation& operation) {
    const bool receives = operation.kind == Kind::broadcast && operation.root != c.self &&
                          c.cursor.phase != Cursor::Phase::fresh;
    if (!receives || !may_both_copy(c, operation)) return true;
    std::atomic<std::uint64_t>& claims = c.rings.line(c.self, c.step).extent;
    if (claims.load(std::memory_order_seq_cst) < kEverything)
        claims.fetch_add(kEverything, std::memory_order_seq_cst);
    return !root_is_writing(c, operation) || !c.rings.is_alive(operation.root);
}

}  // namespace mcastcoll::host
