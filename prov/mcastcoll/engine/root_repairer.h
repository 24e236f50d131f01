// Repair by the root (policy.h: sync), after LA-MPI's broadcast over Quadrics (Yu, Sur, Panda, Aulwes, Graham
// 2005). NAKs (`root_nak`) climb the report tree, and the root multicasts again (sender.h); a member that has
// the fragment already counts a duplicate.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

class RootRepairer {
  public:
    explicit RootRepairer(Core& core) : core_(core) {}

    // Whether missing data of this operation is requested from the root.
    bool uses_root(const Slot& slot) const;
    // Sends a NAK for missing fragments below `to`, and sets the timer to the time when the root should have
    // answered. False: the root did not answer in previous rounds.
    bool nak(Slot& slot, std::uint32_t to);
    void on_root_nak(const wire::Header& header, Bytes payload);
    // A multicast fragment arrived that may answer a NAK.
    void on_multicast(const Slot& slot, std::uint32_t index) {
        if (slot.root_naks.sent_at != kNever) measure_answer(slot, index);
    }
    bool next_message(Slot& slot, Effect& effect) {
        return !slot.root_naks.due.empty() && make_message(slot, effect);
    }

  private:
    void measure_answer(const Slot& slot, std::uint32_t index);
    bool make_message(Slot& slot, Effect& effect);
    Nanoseconds answer_delay(const Slot& slot) const;

    Core& core_;
};

}  // namespace mcastcoll::engine
