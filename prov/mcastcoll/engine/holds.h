// What a root holds back: operations that it does not multicast yet, in order, because the root
// synchronisation waits for others (root_sync.h), or because the caller has brought only part of a small
// message.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

class Holds {
  public:
    explicit Holds(Core& core) : core_(core), holds_(2 * std::size_t{core.config.operation_slots}) {}

    // As root of a broadcast that has just been posted.
    void begin(Slot& slot);
    // As a receiver of one: tells the root, unless its multicast was quicker.
    void tell_entered(Slot& slot);
    void on_entered(const wire::Header& header);
    // Lets go what waits for nothing any more.
    void release();
    // The first in the queue may wait for its caller's bytes, which no time brings.
    Nanoseconds next_deadline() const { return holds_.empty() ? kNever : first_deadline(); }
    bool next_message(Slot& slot, Effect& effect) {
        return slot.multicasting.entered_due && make_message(slot, effect);
    }

  private:
    Nanoseconds first_deadline() const;
    bool make_message(Slot& slot, Effect& effect);
    bool awaits_bytes(const Slot& slot) const;

    Core& core_;
    Ring<Timed> holds_;  // until when at most
};

}  // namespace mcastcoll::engine
