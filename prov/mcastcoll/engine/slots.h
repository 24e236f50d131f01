// The operations of a group that a member still knows, each in a slot.
//
// Operations [first_kept, first_kept + size) have a slot. Those below `next` have been posted here, those
// below `first_open` are finished here, and those below `first_kept` everywhere: nobody can ask for them any
// more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/pool.h"
#include "engine/slot.h"

namespace mcastcoll::engine {

class Slots {
  public:
    // children: in the gather tree.
    Slots(const GroupConfig& config, std::uint32_t children);

    std::size_t size() const { return slots_.size(); }
    // The one that this operation has, or had, or will have.
    Slot& at(std::uint64_t operation) { return slots_[operation % slots_.size()]; }
    const Slot& at(std::uint64_t operation) const { return slots_[operation % slots_.size()]; }
    // The same, made new when it was another's.
    Slot& take(OperationId operation) {
        Slot& slot = at(number_of(operation));
        if (slot.id != operation) renew(slot, operation);
        return slot;
    }
    // Memory for one early vector of each child in each slot.
    Pool& vectors() { return vectors_; }
    // The slot's retransmit buffer, until everybody has finished its operation. There is one for each slot;
    // what was used last is used next, so that only as many are ever written as were needed at a time.
    std::byte* buffer(Slot& slot) {
        if (slot.retransmit_buffer == nullptr) slot.retransmit_buffer = buffers_.take();
        return slot.retransmit_buffer;
    }
    // It has been posted, and not everybody has finished it.
    bool posted(OperationId operation) const {
        return number_of(operation) >= kept_ && number_of(operation) < next_;
    }
    // Null when it is not posted, or finished here.
    Slot* find_active(OperationId operation) {
        Slot& slot = at(number_of(operation));
        return posted(operation) && slot.state == SlotState::active ? &slot : nullptr;
    }

    std::uint64_t first_kept() const { return kept_; }
    std::uint64_t first_open() const { return open_; }
    std::uint64_t next() const { return next_; }
    // No operation from here on has a slot yet.
    std::uint64_t end() const { return kept_ + slots_.size(); }
    bool has(std::uint64_t operation) const { return operation >= kept_ && operation < end(); }

    // An operation is posted: its number.
    std::uint64_t post() { return next_++; }
    // After one has finished here; after all have.
    void close_finished() {
        while (open_ < next_ && at(open_).state == SlotState::finished) ++open_;
    }
    void close_all() { open_ = next_; }
    // The first kept one is finished everywhere: who asks for it is late.
    void release_first() {
        Slot& slot = at(kept_++);
        buffers_.give_back(slot.retransmit_buffer);
        slot.retained = false;
    }

    // Something of this operation was heard before it was posted; and no such one from `early_end` on.
    void note_early(std::uint64_t operation) { early_end_ = std::max(early_end_, operation + 1); }
    std::uint64_t early_end() const { return early_end_; }

  private:
    void renew(Slot& slot, OperationId operation);

    Pool buffers_, vectors_;
    std::vector<Slot> slots_;
    std::uint64_t kept_ = 0, open_ = 0, next_ = 0, early_end_ = 0;
};

}  // namespace mcastcoll::engine
