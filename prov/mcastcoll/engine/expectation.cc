#include "engine/expectation.h"

#include "engine/engine.h"

namespace mcastcoll::engine {
namespace {

// A vector goes up by messages: the children's, or credits for the rest of an own long one.
bool gathers_still(const Core& core, const Slot& slot) {
    const Gathering& gathering = slot.gathering;
    if (!gathers(slot.operation.kind)) return false;
    return !gathering.sent || (!core.is_root(slot) && gathering.contributed < gathering.pieces);
}

// Messages bring it, too, to who has asked, to whose predecessor asks nobody, and to who hears no multicast.
Expectation expected_for(const Core& core, const Slot& slot) {
    if (slot.state != SlotState::active) return {};
    if (gathers_still(core, slot) || core.is_root(slot) || slot.complete_here()) return {false, true};
    const bool hears = core.hears(slot);
    const bool supplied = slot.asking.asked_to > 0 || slot.plan.chained || slot.plan.hands_on;
    return {hears, !hears || supplied};
}

}  // namespace

Expectation Engine::expects() const {
    if (core_.phase != Phase::active) return kAnything;
    // What has no slot yet waits for others' watermarks.
    Expectation all{false, !core_.pending.empty()};
    const Slots& slots = core_.slots;
    for (std::uint64_t number = slots.first_open(); number < slots.next() && all != kAnything; ++number)
        all |= expected_for(core_, slots.at(number));
    return all;
}

}  // namespace mcastcoll::engine
