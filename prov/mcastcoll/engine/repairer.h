// Stage 2 of the broadcast: data that the multicast did not bring arrives along the virtual ring, by reliable
// messages. A member with missing data sends a NAK (`nak`) once per fragment to its supplier, which answers
// at once or when the data arrives (supplier.h). The chain of NAKs ends at the root, which has the whole
// message. Under some repair modes the NAK goes to the root first.
#pragma once

#include "engine/core.h"
#include "engine/root_repairer.h"

namespace mcastcoll::engine {

class Repairer {
  public:
    Repairer(Core& core, RootRepairer& root_repairer) : core_(core), root_repairer_(root_repairer) {}

    // The next NAK covers missing fragments below `to`.
    void request(Slot& slot, std::uint32_t to);
    // Starts the short timer for a hole, which may be reordering.
    void arm_gap(Slot& slot);
    // Forwards a client's NAK for data that this member lacks.
    void forward_nak(Slot& slot);
    // More data has arrived: sends the next NAK if the multicast is silent.
    void continue_chain(Slot& slot);
    // A message with `count` fragments from `first` on has arrived and is not stored yet.
    void on_data(Slot& slot, std::uint32_t first, std::uint32_t count);
    Nanoseconds next_deadline() const;
    void on_timeout();
    bool next_message(Slot& slot, Effect& effect) { return slot.naks.due && make_message(slot, effect); }
    // True if data is missing and neither a deadline nor an expected answer will lead to another NAK. For
    // check_invariants().
    bool is_stuck(const Slot& slot) const;

  private:
    bool make_message(Slot& slot, Effect& effect);
    bool nothing_received(const Slot& slot) const;
    bool in_first_window(const Slot& slot) const;
    std::uint32_t expected_to(const Slot& slot) const;
    void on_nak_timer(Slot& slot);
    void nak_root(Slot& slot, std::uint32_t to);
    void nak_supplier(Slot& slot);

    Core& core_;
    RootRepairer& root_repairer_;
};

}  // namespace mcastcoll::engine
