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
#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "host/liveness.h"
#include "host/offer.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{32} << 10;
constexpr std::uint64_t kPiecesAtOnce = 8;  // by one call of progress()
constexpr std::uint64_t kEverything = std::uint64_t{1} << 40;

std::uint64_t pieces_of(std::size_t bytes) {
    return (bytes + kPieceBytes - 1) / kPieceBytes;
}

}  // namespace

bool Team::may_both_copy(const Operation& operation) const {
    return operation.bytes >= both_copy_from_ && size_ == 2;
}

void Team::set_busy(bool busy) {
    line_of(self_, step_)
        .word.store(Word::of(step_, static_cast<unsigned>(Kind::broadcast), true, busy ? 1 : 0),
                    std::memory_order_seq_cst);
    alarm_.published();
}

// The root's part, once the receiver is there. True when something moved.
bool Team::write_pieces(const Operation& operation) {
    Line& theirs = line_of(1 - self_, step_);
    if (course_.next_reduced != 0 || !Word::is_of(theirs.word.load(std::memory_order_acquire), step_))
        return false;
    const std::uint64_t pieces = pieces_of(operation.bytes);
    Offer to;
    std::memcpy(&to, theirs.payload.data(), sizeof to);
    if (to.bytes != operation.bytes) return mismatch(), false;
    set_busy(true);
    bool moved = false;
    for (std::uint64_t turn = 0; turn < kPiecesAtOnce; ++turn) {
        const std::uint64_t piece = theirs.extent.fetch_add(1, std::memory_order_seq_cst);
        if (piece >= pieces) {
            course_.next_reduced = 1;  // nothing is left to claim
            break;
        }
        const std::size_t offset = piece * kPieceBytes;
        const std::size_t bytes = std::min(kPieceBytes, operation.bytes - offset);
        const int code =
            copy_to(peers_[1 - self_].memory, to.address + offset, operation.buffer + offset, bytes);
        if (code != 0) {
            copy_failed(1 - self_, code);
            break;
        }
        counters_.single_copy_bytes += bytes;
        moved = true;
    }
    set_busy(false);
    return moved;
}

// The receiver's part: offers its buffer, copies, and is done when the root is not writing any more.
Team::Advance Team::read_pieces(Operation& operation, std::uint64_t from_address) {
    Line& own = line_of(self_, step_);
    if (!course_.begun) {
        if (!may_write(step_, kLines)) return Advance::idle;
        const Offer offer{reinterpret_cast<std::uintptr_t>(operation.buffer), operation.bytes, 0};
        std::memcpy(own.payload.data(), &offer, sizeof offer);
        own.extent.store(0, std::memory_order_relaxed);
        publish(step_, Kind::broadcast, true, 0);
        course_.begun = true;
    }
    const std::uint64_t pieces = pieces_of(operation.bytes);
    for (std::uint64_t turn = 0; course_.gathered == 0 && turn < kPiecesAtOnce; ++turn) {
        const std::uint64_t piece = own.extent.fetch_add(1, std::memory_order_seq_cst);
        if (piece >= pieces) {
            course_.gathered = 1;
            break;
        }
        const std::size_t offset = piece * kPieceBytes;
        const std::size_t bytes = std::min(kPieceBytes, operation.bytes - offset);
        const int code =
            copy_from(peers_[operation.root].memory, from_address + offset, operation.buffer + offset, bytes);
        if (code != 0 || failure() != 0) return copy_failed(operation.root, code), Advance::idle;
        counters_.single_copy_bytes += bytes;
    }
    if (course_.gathered == 0) return Advance::moved;
    if (root_is_writing(operation) || failure() != 0) return Advance::idle;
    operation.arrived = operation.bytes;
    leave(step_);
    ++counters_.both_copies;
    return finish(operation, 1);
}

bool Team::root_is_writing(const Operation& operation) {
    blocker_ = operation.root;
    return Word::count(line_of(operation.root, step_).word.load(std::memory_order_seq_cst)) != 0;
}

// Whether a failed operation's buffer may go back to its owner: claims what is left, so that the root begins
// nothing.
bool Team::is_withdrawn(const Operation& operation) {
    const bool receives = operation.kind == Kind::broadcast && operation.root != self_ && course_.begun;
    if (!receives || !may_both_copy(operation)) return true;
    std::atomic<std::uint64_t>& claims = line_of(self_, step_).extent;
    if (claims.load(std::memory_order_seq_cst) < kEverything)
        claims.fetch_add(kEverything, std::memory_order_seq_cst);
    if (!root_is_writing(operation)) return true;
    const Card& card = *peers_[operation.root].card;
    return !is_alive(card.pid, card.start_time);
}

}  // namespace mcastcoll::host
