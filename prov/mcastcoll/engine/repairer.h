// Stage two: what the multicast did not bring comes along the virtual ring, reliably. A member that lacks
// something asks its supplier once, who answers at once or when it has it (supplier.h). The chain of
// questions ends at the root, which has everything. Where the plan says so, the root is asked first.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

// Repair by the root (README.md: sync), after LA-MPI's broadcast over Quadrics (Yu, Sur, Panda, Aulwes,
// Graham 2005). NACKs climb the report tree, and the root multicasts again (sender.h); who has it counts a
// duplicate.
class Nacker {
  public:
    explicit Nacker(Core& core) : core_(core) {}

    // Whether what an operation lacks is the root's to repeat.
    bool asks_root(const Slot& slot) const;
    // Asks for what is missing below `to`; the timer comes back to it when another multicast should have
    // come. False: the root has been asked in vain.
    bool ask(Slot& slot, std::uint32_t to);
    void on_nack(const wire::Header& header, Bytes payload);
    // A fragment is multicast that may have been asked for.
    void on_multicast(const Slot& slot, std::uint32_t index) {
        if (slot.nacks.asked_at != kNever) measure_answer(slot, index);
    }
    bool next_message(Slot& slot, Effect& effect) {
        return !slot.nacks.due.empty() && make_message(slot, effect);
    }

  private:
    void measure_answer(const Slot& slot, std::uint32_t index);
    bool make_message(Slot& slot, Effect& effect);
    Nanoseconds answer_delay(const Slot& slot) const;

    Core& core_;
};

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
    // It lacks something, and neither a deadline nor an answer will come that lets it ask for that.
    bool is_stuck(const Slot& slot) const;

  private:
    bool make_message(Slot& slot, Effect& effect);
    bool is_unheard(const Slot& slot) const;
    bool in_first_window(const Slot& slot) const;
    std::uint32_t expected_to(const Slot& slot) const;
    void on_ask_timer(Slot& slot);
    void ask_root(Slot& slot, std::uint32_t to);
    void ask_supplier(Slot& slot);

    Core& core_;
    Nacker& nacker_;
};

}  // namespace mcastcoll::engine
