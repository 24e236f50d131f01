// Barrier: entering is gathered up a tree of messages to rank 0, which releases everybody by multicast. The
// release is a broadcast of no bytes, so a lost one is repaired like any other fragment.
#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::on_gather(const wire::Header& header, Nanoseconds now) {
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    ++slot->gathered;
    if (slot->state == SlotState::active && slot->operation.kind == OperationKind::barrier)
        check_gather(*slot, now);
}

void Engine::check_gather(Slot& slot, Nanoseconds now) {
    if (slot.gathered < tree_children_.count || slot.gather_sent) return;
    slot.gather_sent = true;
    mark_ready(slot);
    if (slot.is_root(config_.self)) {
        slot.base = slot.fragments;
        return on_all_here(slot, now);
    }
    slot.gather_due = true;
}

}  // namespace mcastcoll::engine
