#include "engine/holds.h"

namespace mcastcoll::engine {

// Whether the root of this small broadcast lacks a part of it. Later broadcasts of the same root wait.
bool Holds::awaits_bytes(const Slot& slot) const {
    return slot.state == SlotState::active && !core_.large(slot) && !slot.complete_here();
}

void Holds::begin(Slot& slot) {
    if (!core_.graph_of(slot).multicasts(core_.self())) return;
    const Nanoseconds wait = core_.root_sync.longest_wait(core_.round_trip.mean());
    const bool waits = wait > Nanoseconds{} && !(core_.root_sync.ends_early() && slot.multicasting.entered);
    // Also waits behind a held operation: receivers would take a later packet as a sign of an earlier loss.
    if (!waits && !awaits_bytes(slot) && holds_.empty()) return;
    if (!holds_.push({slot.id, core_.now + wait})) return;
    slot.multicasting.held = true;
    ++core_.counters.roots_held;
}

Nanoseconds Holds::first_deadline() const {
    const Slot* slot = core_.slots.find(holds_.front().operation);
    return slot != nullptr && awaits_bytes(*slot) ? kNever : holds_.front().at;
}

void Holds::release() {
    for (; !holds_.empty(); holds_.pop()) {
        const Timed& first = holds_.front();
        Slot* slot = core_.slots.find(first.operation);
        if (slot == nullptr) continue;
        const bool entered = core_.root_sync.ends_early() && slot->multicasting.entered;
        if (awaits_bytes(*slot) || (first.at > core_.now && !entered)) return;
        slot->multicasting.held = false;
        core_.mark(*slot);
    }
}

void Holds::send_entered(Slot& slot) {
    if (!core_.root_sync.announces_entry() || slot.reception.ever) return;
    if (core_.root_sync.drawn(number_of(slot.id), slot.operation.root) != core_.self()) return;
    slot.multicasting.entered_due = core_.graph_of(slot).multicasts(slot.operation.root);
}

void Holds::on_entered(const wire::Header& header) {
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    const bool posted = slot->state >= SlotState::active;
    if (core_.root_sync.drawn(number_of(slot->id), core_.self()) != header.sender ||
        (posted && !core_.is_root(*slot)))
        return drop(core_.counters.bad_sender);
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (slot->multicasting.entered) return;
    slot->multicasting.entered = true;
    core_.root_sync.note_entered(posted ? core_.now - slot->posted_at : Nanoseconds{});
    release();
}

bool Holds::make_message(Slot& slot, Effect& effect) {
    slot.multicasting.entered_due = false;
    ++core_.counters.entered_sent;
    return core_.message(effect, wire::Kind::entered, slot.operation.root, slot.id);
}

}  // namespace mcastcoll::engine
