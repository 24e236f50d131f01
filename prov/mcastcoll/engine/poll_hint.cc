#include "engine/poll_hint.h"

#include "engine/engine.h"

namespace mcastcoll::engine {
namespace {

// Whether messages must still bring contributions of the children, or credits for the rest of this member's
// long vector.
bool gathers_still(const Core& core, const Slot& slot) {
    const Slot::Gathering& gathering = slot.gathering;
    if (!gathers(slot.operation.kind)) return false;
    return !gathering.sent || (!core.is_root(slot) && gathering.contributed < gathering.pieces);
}

// The data may also arrive by message: after a NAK of this member, under a repair mode that requests or
// forwards without a loss, or when this member cannot receive the multicast.
PollHint hint_for(const Core& core, const Slot& slot) {
    if (slot.state != SlotState::active) return {};
    if (gathers_still(core, slot) || core.is_root(slot) || slot.complete_here()) return {false, true};
    const bool receives = core.receives(slot);
    const bool supplied = slot.naks.requested_to > 0 || slot.repair_mode.chained || slot.repair_mode.forwards;
    return {receives, !receives || supplied};
}

}  // namespace

PollHint Engine::poll_hint() const {
    if (core_.phase != Phase::active) return kPollAll;
    // An operation without a slot waits for watermarks, which arrive by message.
    PollHint all{false, !core_.pending.empty()};
    const Slots& slots = core_.slots;
    for (std::uint64_t number = slots.first_open(); number < slots.next() && all != kPollAll; ++number)
        all |= hint_for(core_, slots.at(number));
    return all;
}

}  // namespace mcastcoll::engine
