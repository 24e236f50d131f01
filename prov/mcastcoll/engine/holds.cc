#include "engine/holds.h"

#include <utility>

namespace mcastcoll::engine {

// A small broadcast that its root has not got all of. Others of the same root stay behind it.
bool Holds::awaits_bytes(const Slot& slot) const {
    return slot.state == SlotState::active && !core_.large(slot) && !slot.complete_here();
}

void Holds::begin(Slot& slot) {
    if (!core_.graph_of(slot).multicasts(core_.config.self)) return;
    const Nanoseconds wait = core_.root_sync.longest_wait(core_.round_trip.mean());
    const bool waits = wait > Nanoseconds{} && !(core_.root_sync.ends_early() && slot.multicasting.entered);
    // Behind one that is held, so that receivers do not take the later for a sign that the earlier is lost.
    if (!waits && !awaits_bytes(slot) && holds_.empty()) return;
    if (!holds_.push({slot.id, core_.now + wait})) return;
    slot.multicasting.held = true;
    ++core_.counters.roots_held;
}

Nanoseconds Holds::first_deadline() const {
    const Timed& first = holds_.front();
    const Slot& slot = core_.slots.at(number_of(first.operation));
    return slot.id == first.operation && awaits_bytes(slot) ? kNever : first.at;
}

void Holds::release() {
    while (!holds_.empty()) {
        const Timed& first = holds_.front();
        Slot& slot = core_.slots.at(number_of(first.operation));
        const bool over =
            slot.id != first.operation ||
            (!awaits_bytes(slot) &&
             (first.at <= core_.now || (core_.root_sync.ends_early() && slot.multicasting.entered)));
        if (!over) return;
        if (slot.id == first.operation) {
            slot.multicasting.held = false;
            core_.mark(slot);
        }
        holds_.pop();
    }
}

void Holds::tell_entered(Slot& slot) {
    if (!core_.root_sync.tells() || slot.hearing.ever) return;
    if (core_.root_sync.drawn(number_of(slot.id), slot.operation.root) != core_.config.self) return;
    slot.multicasting.entered_due = core_.graph_of(slot).multicasts(slot.operation.root);
}

void Holds::on_entered(const wire::Header& header) {
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    const bool posted = slot->state >= SlotState::active;
    if (core_.root_sync.drawn(number_of(slot->id), core_.config.self) != header.sender ||
        (posted && !slot->is_root(core_.config.self))) {
        ++core_.counters.bad_sender;
        return;
    }
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (slot->multicasting.entered) return;
    slot->multicasting.entered = true;
    core_.root_sync.note_entered(posted ? core_.now - slot->posted_at : Nanoseconds{});
    release();
}

bool Holds::make_message(Slot& slot, Effect& effect) {
    slot.multicasting.entered_due = false;
    ++core_.counters.entered_sent;
    core_.message(effect, wire::Kind::entered, slot.operation.root, slot.id, 0, 0, {});
    return true;
}

}  // namespace mcastcoll::engine
