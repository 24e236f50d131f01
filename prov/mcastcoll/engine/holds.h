// Operations that a root does not multicast yet, in order: the root synchronisation waits for receivers
// (root_synchronizer.h), or the caller has supplied only a part of a small message.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

class Holds {
  public:
    explicit Holds(Core& core) : core_(core), holds_(2 * std::size_t{core.config.operation_slots}) {}

    // Called on the root when a broadcast is posted: holds the broadcast if it must wait.
    void begin(Slot& slot);
    // On a receiver: reports to the root that this member has entered, unless the multicast was faster.
    void send_entered(Slot& slot);
    void on_entered(const wire::Header& header);
    // Releases operations from the front of the queue that wait no longer.
    void release();
    // kNever while the first operation waits for its caller's data.
    Nanoseconds next_deadline() const { return holds_.empty() ? kNever : first_deadline(); }
    bool next_message(Slot& slot, Effect& effect) {
        return slot.multicasting.entered_due && make_message(slot, effect);
    }

  private:
    Nanoseconds first_deadline() const;
    bool make_message(Slot& slot, Effect& effect);
    bool awaits_bytes(const Slot& slot) const;

    Core& core_;
    Ring<Timed> holds_;  // held operations, with the latest time of their release
};

}  // namespace mcastcoll::engine
