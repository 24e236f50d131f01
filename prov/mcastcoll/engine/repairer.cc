#include "engine/repairer.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::engine {

// The root has sent the first window without waiting for anybody.
bool Repairer::in_first_window(const Slot& slot) const {
    return core_.large(slot) && slot.heard_ever && !slot.partial && slot.base < core_.config.window;
}

// What the root may have sent.
std::uint32_t Repairer::expected_to(const Slot& slot) const {
    return in_first_window(slot) ? std::min(slot.fragments, core_.config.window) : slot.fragments;
}

void Repairer::request(Slot& slot, std::uint32_t to) {
    slot.ask_to = std::max(slot.ask_to, std::min({to, slot.fragments, slot.base + core_.config.window}));
    slot.ask_due = true;
    core_.mark(slot);
}

void Repairer::arm_gap(Slot& slot) {
    slot.ask_at = std::min(slot.ask_at, core_.now + core_.deadlines.gap());
}

Nanoseconds Repairer::next_deadline() const {
    Nanoseconds next = kNever;
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id)
        if (core_.slots.at(id).state == SlotState::active) next = std::min(next, core_.slots.at(id).ask_at);
    return next;
}

void Repairer::on_timeout() {
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id) {
        Slot& slot = core_.slots.at(id);
        if (slot.state == SlotState::active && slot.ask_at <= core_.now) on_ask_timer(slot);
    }
}

void Repairer::on_ask_timer(Slot& slot) {
    if (slot.complete_here()) {
        slot.ask_at = kNever;
        return;
    }
    // A root that lacks it itself has nothing to multicast again.
    const bool root_waits = slot.partial && slot.base >= slot.revealed;
    if (root_waits || !nacker_.asks_root(slot)) return ask_supplier(slot);
    const std::uint32_t to = slot.base < slot.revealed ? slot.revealed : expected_to(slot);
    ask_root(slot, std::min(to, slot.base + core_.config.window));
}

void Repairer::ask_root(Slot& slot, std::uint32_t to) {
    if (!nacker_.ask(slot, to)) ask_supplier(slot);
}

void Repairer::ask_supplier(Slot& slot) {
    const bool hole = slot.base < slot.revealed && slot.asked_to < slot.revealed;
    if (!hole && core_.large(slot) && !in_first_window(slot)) return poll_supplier(slot);
    if (!hole && !slot.heard) slot.chained = true;
    slot.heard = false;
    if (hole) slot.asked_at = core_.now;  // the supplier very likely has it: the answer measures a round trip
    request(slot, hole ? slot.revealed : expected_to(slot));
    slot.ask_at = slot.chained ? kNever : core_.now + core_.deadlines.silence(slot);
}

// A member that is asked for what it lacks itself need not wait for its own deadline. Of a large message only
// holes count: the rest may merely not have been sent.
void Repairer::ask_onward(Slot& slot) {
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return;
    const std::uint32_t to = core_.large(slot) ? slot.revealed : slot.fragments;
    if (to <= slot.base) return;
    if (nacker_.asks_root(slot)) return ask_root(slot, std::min(to, slot.base + core_.config.window));
    request(slot, to);
}

// Nothing is known to be missing, yet nothing comes: the multicast may be dead, or the root waits for a
// member that is slower. Asking for much would bring by message what will be multicast as well, so a single
// fragment is asked for, and a root keeps that question until it has multicast the fragment. When the answer
// is what brings it, the multicast is dead.
void Repairer::poll_supplier(Slot& slot) {
    slot.heard = false;
    slot.polled = slot.base;
    slot.ask_at = kNever;
    request(slot, slot.base + 1);
}

// With the multicast silent, the next window is asked for before the last one is used up.
void Repairer::continue_chain(Slot& slot) {
    if (!slot.chained || slot.asked_to >= slot.fragments) return;
    if (slot.asked_to <= slot.base + core_.config.window / 2) request(slot, slot.fragments);
}

void Repairer::on_data(Slot& slot, std::uint32_t first, std::uint32_t count) {
    if (slot.asked_at != kNever) core_.round_trip.on_answer(core_.now - slot.asked_at);
    note_supplied(slot);
    if (slot.polled != kNothingPolled && slot.polled - first < count) note_poll(slot);
}

// What was polled is here. When this is what brings it, the multicast is dead. But a root that sends a
// fragment whenever it gets one answers often, and the answer may overtake the multicast: of such a one
// another poll must tell the same.
void Repairer::note_poll(Slot& slot) {
    const bool multicast_brought_it = slot.has(slot.polled);
    slot.polled = kNothingPolled;
    if (multicast_brought_it) return;
    if (!slot.partial || std::exchange(slot.doubted, true)) {
        slot.chained = true;
    } else {
        slot.ask_at = core_.now + core_.deadlines.silence(slot);
    }
}

// What an answer tells besides its bytes: how long a repair along the ring takes, unless the root was merely
// late; and how long the deaf usually wait.
void Repairer::note_supplied(Slot& slot) {
    if (slot.state != SlotState::active) return;
    const bool hole = std::exchange(slot.asked_at, kNever) != kNever;
    const Nanoseconds asked_at = std::exchange(slot.first_asked_at, kNever);
    if (asked_at != kNever && (hole || !slot.heard_ever))
        core_.policy.note_repair(Route::supplier, core_.now - asked_at, core_.round_trip.mean());
    if (slot.heard_ever || core_.graph_of(slot).hears(slot.operation.root, core_.config.self)) return;
    slot.heard_ever = true;
    core_.deadlines.on_first(slot, core_.now);
}

bool Repairer::next_message(Slot& slot, Effect& effect) {
    if (!slot.ask_due) return false;
    slot.ask_due = false;
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return false;
    const std::uint32_t to = std::min(std::max(slot.ask_to, slot.base), slot.base + core_.config.window);
    std::fill(core_.bits.begin(), core_.bits.end(), std::byte{0});
    std::uint32_t last = slot.base;
    for (std::uint32_t index = slot.base; index < to; ++index) {
        if (slot.has(index) || slot.asked.test(index)) continue;
        slot.asked.set(index);
        const std::uint32_t offset = index - slot.base;
        core_.bits[offset / 8] |= static_cast<std::byte>(1U << (offset % 8));
        last = index + 1;
    }
    slot.asked_to = std::max(slot.asked_to, to);
    if (last == slot.base) return false;
    if (slot.first_asked_at == kNever) slot.first_asked_at = core_.now;
    const std::size_t length = (last - slot.base + 7) / 8;
    ++core_.counters.asks_sent;
    core_.message(effect, wire::Kind::ask, slot.supplier, slot.id, slot.base, slot.bytes,
                  Bytes(core_.bits).first(length));
    return true;
}

}  // namespace mcastcoll::engine
