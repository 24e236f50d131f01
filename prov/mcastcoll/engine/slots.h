// Operations of a group that a member still keeps, each in a slot, from its first packet until the whole
// group has finished.
//
// Memory: a slot has a retransmit buffer, bitmaps of a window and nine clients (kMaxArity + 1). The
// provider's retransmit buffers are an eighth of its window, at most 64 KiB: up to 8 MiB of addresses for 128
// slots, of which a message touches only as many pages as it fills. Mainly the ballots of the member's
// subtree take more memory in larger groups.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/pool.h"
#include "engine/slot.h"

namespace mcastcoll::engine {

// A task for an operation at a point in time.
struct Timed {
    OperationId operation{};
    Nanoseconds at{};
};

// Operations [first_kept, first_kept + size) have a slot. Operations below `next` are posted here, operations
// below `first_open` are finished here, and operations below `first_kept` are finished by the whole group, so
// no NAK for these can come.
class Slots {
  public:
    // children: in the gather tree.
    Slots(const GroupConfig& config, std::uint32_t children);

    std::size_t size() const { return slots_.size(); }
    // The slot of this operation, whether or not another operation uses the slot now.
    Slot& at(std::uint64_t operation) { return slots_[operation % slots_.size()]; }
    const Slot& at(std::uint64_t operation) const { return slots_[operation % slots_.size()]; }
    // The slot of this operation, renewed if an earlier operation used it.
    Slot& take(OperationId operation) {
        Slot& slot = at(number_of(operation));
        if (slot.id != operation) renew(slot, operation);
        return slot;
    }
    // Memory for early vectors, one per child and slot.
    Pool& vectors() { return vectors_; }
    // The slot's retransmit buffer, kept until the whole group has finished the operation. There is a buffer
    // per slot; the most recently used is reused first, so only as many are touched as are needed at a time.
    std::byte* buffer(Slot& slot) {
        if (slot.retransmit_buffer == nullptr) slot.retransmit_buffer = buffers_.take();
        return slot.retransmit_buffer;
    }
    // Memory for copies of large messages for slow peers.
    Pool& late_copies() { return late_copies_; }
    // The operation is posted here, and is not finished on all members yet.
    bool posted(OperationId operation) const {
        return number_of(operation) >= kept_ && number_of(operation) < next_;
    }
    // Null if another operation uses the slot.
    Slot* find(OperationId operation) {
        Slot& slot = at(number_of(operation));
        return slot.id == operation ? &slot : nullptr;
    }
    // Null if the operation is not posted, or is finished here.
    Slot* find_active(OperationId operation) {
        Slot* const slot = find(operation);
        return slot != nullptr && slot->state == SlotState::active ? slot : nullptr;
    }

    std::uint64_t first_kept() const { return kept_; }
    std::uint64_t first_open() const { return open_; }
    std::uint64_t next() const { return next_; }
    // No operation from here on has a slot yet.
    std::uint64_t end() const { return kept_ + slots_.size(); }
    bool has(std::uint64_t operation) const { return operation >= kept_ && operation < end(); }

    // Posts an operation and returns its number.
    std::uint64_t post() { return next_++; }
    // Moves first_open() past the operations that are finished here.
    void close_finished() {
        while (open_ < next_ && at(open_).state == SlotState::finished) ++open_;
    }
    // Closes all operations, finished or not, when the group fails.
    void close_all() { open_ = next_; }
    // Releases the first kept operation, which is finished everywhere; a later NAK for it is stale.
    void release_first() {
        Slot& slot = at(kept_++);
        buffers_.give_back(slot.retransmit_buffer);
        slot.retained = false;
    }

    // A packet of this operation arrived before the post.
    void note_early(std::uint64_t operation) { early_end_ = std::max(early_end_, operation + 1); }
    // End of the operations of which a packet arrived before the post.
    std::uint64_t early_end() const { return early_end_; }

  private:
    void renew(Slot& slot, OperationId operation);

    Pool buffers_, vectors_, late_copies_;
    std::vector<Slot> slots_;
    std::uint64_t kept_ = 0, open_ = 0, next_ = 0, early_end_ = 0;
};

}  // namespace mcastcoll::engine
