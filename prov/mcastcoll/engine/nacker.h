// Repair by the root (LA-MPI's broadcast over Quadrics: Yu, Sur, Panda, Aulwes, Graham 2005). A receiver that
// lacks something tells its parent in the report tree (NACK), who passes on at once what it has not passed on
// within the last deadline, so that the root hears of every fragment once, whatever the number of those that
// lack it. The root multicasts it again (sender.h); who has it counts a duplicate.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

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
        return slot.nacks.pending() && make_message(slot, effect);
    }

  private:
    void measure_answer(const Slot& slot, std::uint32_t index);
    bool make_message(Slot& slot, Effect& effect);
    Nanoseconds answer_delay(const Slot& slot) const;

    Core& core_;
};

}  // namespace mcastcoll::engine
