// What others are owed: answers to their questions, and that nobody runs ahead of them.
#pragma once

#include "engine/repairer.h"

namespace mcastcoll::engine {

// A root is never more than a window ahead of the slowest member that hears it, and nobody lets go of a large
// message that somebody may still need. Members report up a tree what their whole subtree has, and tell their
// supplier when they are done.
class FlowControl {
  public:
    explicit FlowControl(Core& core) : core_(core), lingering_(core.config.operation_slots) {}

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
    Nanoseconds next_deadline() const { return lingering_.empty() ? kNever : lingering_.front().at; }
    void on_timeout();
    void on_report(const wire::Header& header);
    void on_done(const wire::Header& header);
    bool next_message(Slot& slot, Effect& effect) {
        return (slot.reporting.due || slot.done_due) && make_message(slot, effect);
    }
    // Multicast fragments of own large operations that are not acknowledged.
    std::uint64_t in_flight() const { return in_flight_; }

  private:
    void update_large(Slot& slot);
    bool may_be_needed(const Slot& slot) const;
    void linger(Slot& slot);
    bool may_go_on(const Slot& slot) const;
    bool make_message(Slot& slot, Effect& effect);

    Core& core_;
    Ring<Timed> lingering_;  // when operations that only others need end for the caller
    std::uint64_t in_flight_ = 0;
};

// Along the ring, and in the tree of the deaf, questions are answered with what is here, and remembered until
// the rest is. Where the plan says so, small messages move along the ring without being asked for.
class Supplier {
  public:
    Supplier(Core& core, FlowControl& flow, Repairer& repairer)
        : core_(core),
          flow_(flow),
          repairer_(repairer),
          pushes_(2 * std::size_t{core.config.operation_slots}) {}

    void on_ask(const wire::Header& header, Bytes payload);
    // A posted operation has all its fragments here.
    void on_all_here(Slot& slot);
    Nanoseconds next_deadline() const { return pushes_.empty() ? kNever : pushes_.front().at; }
    void on_timeout();
    bool next_message(Slot& slot, Effect& effect) {
        return slot.has_waiting_client() && supply(slot, effect);
    }

  private:
    bool supply(Slot& slot, Effect& effect);
    bool keeps(const Slot& slot, const Client& client, std::uint32_t fragment) const;
    std::uint32_t supply_limit(const Slot& slot) const;
    void supply_all(Slot& slot, bool hearing);

    Core& core_;
    FlowControl& flow_;
    Repairer& repairer_;
    Ring<Timed> pushes_;  // when small messages are handed on
};

}  // namespace mcastcoll::engine
