// Flow control: keeps a root at most one window ahead of its slowest receiver, and a large message in its
// buffer while a peer may need data. Members report the progress of their subtree up the report tree
// (supply_graph.h), and send `done` to their supplier.
//
// Large messages: fragments go straight to the caller's buffer, and packets that arrive before the post into
// one of early_buffers. A root is at most one window ahead of the slowest receiving member, posted or not,
// because a window fits in every socket buffer. Members report up the report tree every quarter of a window,
// or every half if the message fits in one window, at the same places on all levels. A member is done when
// all fragments are here and its clients have sent `done`, and on a root the last reports are in; until then
// peers may request data from the caller's buffer.
//
// While nothing is lost, a late peer does not delay the caller: one round trip later the message is copied
// (up to late_bytes = 1 MiB, late_copies = 4 at a time), the caller continues, and the operation ends as
// before. Without the copy, each member would wait until its successor in the ring (supply_graph.h) is
// scheduled, and the root for the whole ring.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

class FlowControl {
  public:
    explicit FlowControl(Core& core) : core_(core), lingering_(core.config.operation_slots) {}

    // End of the fragments that a root may multicast, set by its slowest receiver.
    std::uint32_t limit(const Slot& slot) const;
    // Whether the window that a root's large operations share has no room for this operation's next fragment.
    bool is_full(const Slot& slot) const;
    // A fragment of a root's large operation was multicast for the first time.
    void sent() { ++in_flight_; }
    // More of a large message is here; does nothing for a small message.
    void update(Slot& slot) {
        if (slot.state >= SlotState::active && core_.large(slot)) update_large(slot);
    }
    // A large message is here completely.
    void on_all_here(Slot& slot);
    void check_finished(Slot& slot);
    Nanoseconds next_deadline() const { return lingering_.empty() ? kNever : lingering_.front().at; }
    void on_timeout();
    void on_report(const wire::Header& header);
    void on_done(const wire::Header& header);
    bool next_message(Slot& slot, Effect& effect) {
        return (slot.reporting.due || slot.done_due) && make_message(slot, effect);
    }
    // Fragments of own large operations that were multicast and are not acknowledged.
    std::uint64_t in_flight() const { return in_flight_; }

  private:
    void update_large(Slot& slot);
    bool may_be_needed(const Slot& slot) const;
    void linger(Slot& slot);
    bool may_go_on(const Slot& slot) const;
    bool make_message(Slot& slot, Effect& effect);

    Core& core_;
    Ring<Timed> lingering_;  // operations that only peers still need, with the time of their completion
    std::uint64_t in_flight_ = 0;
};

}  // namespace mcastcoll::engine
