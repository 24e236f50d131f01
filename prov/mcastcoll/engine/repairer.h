// Stage two: what the multicast did not bring comes along the virtual ring, reliably. A member that lacks
// something asks its supplier once, who answers at once or when it has it (supplier.h). The chain of
// questions ends at the root, which has everything. Where the plan says so, the root is asked first
// (nacker.h).
#pragma once

#include "engine/core.h"
#include "engine/nacker.h"

namespace mcastcoll::engine {

class Repairer {
  public:
    Repairer(Core& core, Nacker& nacker) : core_(core), nacker_(nacker) {}

    // The next question covers what is missing below.
    void request(Slot& slot, std::uint32_t to);
    // A hole was seen, which may be mere reordering.
    void arm_gap(Slot& slot);
    // Somebody wants what this member lacks itself.
    void ask_onward(Slot& slot);
    // More of it is here.
    void continue_chain(Slot& slot);
    // A message has brought so many fragments; before they are stored.
    void on_data(Slot& slot, std::uint32_t first, std::uint32_t count);
    Nanoseconds next_deadline() const;
    void on_timeout();
    bool next_message(Slot& slot, Effect& effect) { return slot.asking.due && make_message(slot, effect); }

  private:
    bool make_message(Slot& slot, Effect& effect);
    bool in_first_window(const Slot& slot) const;
    std::uint32_t expected_to(const Slot& slot) const;
    void on_ask_timer(Slot& slot);
    void ask_root(Slot& slot, std::uint32_t to);
    void ask_supplier(Slot& slot);
    void poll_supplier(Slot& slot);
    void note_supplied(Slot& slot);
    void note_poll(Slot& slot);

    Core& core_;
    Nacker& nacker_;
};

}  // namespace mcastcoll::engine
