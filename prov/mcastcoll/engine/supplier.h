// Answers NAKs along the ring and in the tree of deaf members from received data, and queues NAKs for the
// rest. Forwards small messages along the ring without a NAK if the repair mode says so.
#pragma once

#include "engine/flow_control.h"
#include "engine/repairer.h"

namespace mcastcoll::engine {

class Supplier {
  public:
    Supplier(Core& core, FlowControl& flow, Repairer& repairer)
        : core_(core),
          flow_(flow),
          repairer_(repairer),
          pushes_(2 * std::size_t{core.config.operation_slots}) {}

    void on_nak(const wire::Header& header, Bytes payload);
    // A posted operation has all its fragments here.
    void on_all_here(Slot& slot);
    Nanoseconds next_deadline() const { return pushes_.empty() ? kNever : pushes_.front().at; }
    void on_timeout();
    bool next_message(Slot& slot, Effect& effect) {
        return slot.has_waiting_client() && supply(slot, effect);
    }

  private:
    bool supply(Slot& slot, Effect& effect);
    bool keeps(const Slot& slot, const Slot::Client& client, std::uint32_t fragment) const;
    std::uint32_t supply_limit(const Slot& slot) const;
    void supply_all(Slot& slot, bool receiving);

    Core& core_;
    FlowControl& flow_;
    Repairer& repairer_;
    Ring<Timed> pushes_;  // small messages to forward, with the time for this
};

}  // namespace mcastcoll::engine
