// Flow control: a root is never more than a window ahead of the slowest member that hears it, and nobody lets
// go of a large message that somebody may still need. Members report up a tree what their whole subtree has,
// and tell their supplier when they are done.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

class FlowControl {
  public:
    explicit FlowControl(Core& core) : core_(core) {}

    // Up to which fragment a root may go, for the sake of the slowest member that hears it.
    std::uint32_t limit(const Slot& slot) const;
    // Whether the window that a root's large operations share has no room for the next fragment of this one.
    bool is_full(const Slot& slot) const;
    // A fragment of a root's large operation goes out for the first time.
    void sent() { ++in_flight_; }
    // More of it is here than before; or all.
    void update(Slot& slot) {
        if (slot.state >= SlotState::active && core_.large(slot)) update_large(slot);
    }
    void on_all_here(Slot& slot);
    void check_finished(Slot& slot);
    void on_report(const wire::Header& header);
    void on_done(const wire::Header& header);
    bool next_message(Slot& slot, Effect& effect) {
        return (slot.reporting.due || slot.done_due) && make_message(slot, effect);
    }
    // Multicast fragments of own large operations that are not acknowledged.
    std::uint64_t in_flight() const { return in_flight_; }

  private:
    void update_large(Slot& slot);
    bool make_message(Slot& slot, Effect& effect);
    void acknowledge(Slot& slot, std::uint32_t least);

    Core& core_;
    std::uint64_t in_flight_ = 0;
};

}  // namespace mcastcoll::engine
