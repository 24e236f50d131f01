#include "engine/repairer.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::engine {

// The root has sent the first window without waiting for anybody.
bool Repairer::in_first_window(const Slot& slot) const {
    return core_.large(slot) && slot.hearing.ever && !slot.hearing.partial && slot.base < core_.config.window;
}

// What the root may have sent.
std::uint32_t Repairer::expected_to(const Slot& slot) const {
    return in_first_window(slot) ? std::min(slot.fragments, core_.config.window) : slot.fragments;
}

void Repairer::request(Slot& slot, std::uint32_t to) {
    slot.asking.to =
        std::max(slot.asking.to, std::min({to, slot.fragments, slot.base + core_.config.window}));
    slot.asking.due = true;
    core_.mark(slot);
}

void Repairer::arm_gap(Slot& slot) {
    slot.asking.at = std::min(slot.asking.at, core_.now + core_.deadlines.gap());
}

Nanoseconds Repairer::next_deadline() const {
    Nanoseconds next = kNever;
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id)
        if (core_.slots.at(id).state == SlotState::active)
            next = std::min(next, core_.slots.at(id).asking.at);
    return next;
}

void Repairer::on_timeout() {
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id) {
        Slot& slot = core_.slots.at(id);
        if (slot.state == SlotState::active && slot.asking.at <= core_.now) on_ask_timer(slot);
    }
}

void Repairer::on_ask_timer(Slot& slot) {
    if (slot.complete_here()) {
        slot.asking.at = kNever;
        return;
    }
    // A root that lacks it itself has nothing to multicast again.
    const bool root_waits = slot.hearing.partial && slot.base >= slot.hearing.revealed;
    if (root_waits || !nacker_.asks_root(slot)) return ask_supplier(slot);
    const std::uint32_t to = slot.base < slot.hearing.revealed ? slot.hearing.revealed : expected_to(slot);
    ask_root(slot, std::min(to, slot.base + core_.config.window));
}

void Repairer::ask_root(Slot& slot, std::uint32_t to) {
    if (!nacker_.ask(slot, to)) ask_supplier(slot);
}

void Repairer::ask_supplier(Slot& slot) {
    const bool hole = slot.base < slot.hearing.revealed && slot.asking.asked_to < slot.hearing.revealed;
    if (!hole && core_.large(slot) && !in_first_window(slot)) return poll_supplier(slot);
    if (!hole && !slot.hearing.lately) slot.asking.chained = true;
    slot.hearing.lately = false;
    // The supplier very likely has it: the answer measures a round trip.
    if (hole) slot.asking.asked_at = core_.now;
    request(slot, hole ? slot.hearing.revealed : expected_to(slot));
    slot.asking.at = slot.asking.chained ? kNever : core_.now + core_.deadlines.silence(slot);
}

// A member that is asked for what it lacks itself need not wait for its own deadline. Of a large message only
// holes count: the rest may merely not have been sent.
void Repairer::ask_onward(Slot& slot) {
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return;
    const std::uint32_t to = core_.large(slot) ? slot.hearing.revealed : slot.fragments;
    if (to <= slot.base) return;
    if (nacker_.asks_root(slot)) return ask_root(slot, std::min(to, slot.base + core_.config.window));
    request(slot, to);
}

// Nothing is known to be missing, yet nothing comes: the multicast may be dead, or the root waits for a
// member that is slower. Asking for much would bring by message what will be multicast as well, so a single
// fragment is asked for, and a root keeps that question until it has multicast the fragment. When the answer
// is what brings it, the multicast is dead.
void Repairer::poll_supplier(Slot& slot) {
    slot.hearing.lately = false;
    slot.asking.polled = slot.base;
    slot.asking.at = kNever;
    request(slot, slot.base + 1);
}

// With the multicast silent, the next window is asked for before the last one is used up.
void Repairer::continue_chain(Slot& slot) {
    if (!slot.asking.chained || slot.asking.asked_to >= slot.fragments) return;
    if (slot.asking.asked_to <= slot.base + core_.config.window / 2) request(slot, slot.fragments);
}

void Repairer::on_data(Slot& slot, std::uint32_t first, std::uint32_t count) {
    if (slot.asking.asked_at != kNever) core_.round_trip.on_answer(core_.now - slot.asking.asked_at);
    note_supplied(slot);
    if (slot.asking.polled != kNothingPolled && slot.asking.polled - first < count) note_poll(slot);
}

// What was polled is here. When this is what brings it, the multicast is dead. But a root that sends a
// fragment whenever it gets one answers often, and the answer may overtake the multicast: of such a one
// another poll must tell the same.
void Repairer::note_poll(Slot& slot) {
    const bool multicast_brought_it = slot.has(slot.asking.polled);
    slot.asking.polled = kNothingPolled;
    if (multicast_brought_it) return;
    if (!slot.hearing.partial || std::exchange(slot.asking.doubted, true)) {
        slot.asking.chained = true;
    } else {
        slot.asking.at = core_.now + core_.deadlines.silence(slot);
    }
}

// What an answer tells besides its bytes: how long a repair along the ring takes, unless the root was merely
// late; and how long the deaf usually wait.
void Repairer::note_supplied(Slot& slot) {
    if (slot.state != SlotState::active) return;
    const bool hole = std::exchange(slot.asking.asked_at, kNever) != kNever;
    const Nanoseconds asked_at = std::exchange(slot.asking.first_asked_at, kNever);
    if (asked_at != kNever && (hole || !slot.hearing.ever))
        core_.policy.note_repair(Route::supplier, core_.now - asked_at, core_.round_trip.mean());
    if (slot.hearing.ever || core_.graph_of(slot).hears(slot.operation.root, core_.config.self)) return;
    slot.hearing.ever = true;
    core_.deadlines.on_first(slot, core_.now);
}

bool Repairer::make_message(Slot& slot, Effect& effect) {
    slot.asking.due = false;
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return false;
    const std::uint32_t to = std::min(std::max(slot.asking.to, slot.base), slot.base + core_.config.window);
    std::fill(core_.bits.begin(), core_.bits.end(), std::byte{0});
    std::uint32_t last = slot.base;
    for (std::uint32_t index = slot.base; index < to; ++index) {
        if (slot.has(index) || slot.asking.asked.test(index)) continue;
        slot.asking.asked.set(index);
        const std::uint32_t offset = index - slot.base;
        core_.bits[offset / 8] |= static_cast<std::byte>(1U << (offset % 8));
        last = index + 1;
    }
    slot.asking.asked_to = std::max(slot.asking.asked_to, to);
    if (last == slot.base) return false;
    if (slot.asking.first_asked_at == kNever) slot.asking.first_asked_at = core_.now;
    const std::size_t length = (last - slot.base + 7) / 8;
    ++core_.counters.asks_sent;
    core_.message(effect, wire::Kind::ask, slot.supplier, slot.id, slot.base, slot.bytes,
                  Bytes(core_.bits).first(length));
    return true;
}

}  // namespace mcastcoll::engine
