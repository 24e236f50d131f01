#include "engine/repairer.h"

namespace mcastcoll::engine {

// Nothing of a message of many fragments has arrived. A loss would have spared some, so most likely the
// message was not multicast yet.
bool Repairer::nothing_received(const Slot& slot) const {
    const bool is_long = slot.fragments > RedundancyPolicy::kMaxCopied;
    return is_long && !slot.reception.ever && !core_.comes_unsolicited(slot);
}

// The root sends the first window without waiting, unless an earlier message occupies a part of the window.
bool Repairer::in_first_window(const Slot& slot) const {
    if (!core_.large(slot) || !slot.reception.ever || slot.reception.partial ||
        slot.base >= core_.config.window)
        return false;
    for (std::uint64_t id = core_.slots.first_kept(); id < number_of(slot.id); ++id) {
        const Slot& earlier = core_.slots.at(id);
        if (earlier.operation.root == slot.operation.root && core_.large(earlier)) return false;
    }
    return true;
}

// End of the fragments that the root may have sent.
std::uint32_t Repairer::expected_to(const Slot& slot) const {
    return in_first_window(slot) ? std::min(slot.fragments, core_.config.window) : slot.fragments;
}

void Repairer::request(Slot& slot, std::uint32_t to) {
    slot.naks.to = std::max(slot.naks.to, std::min({to, slot.fragments, slot.base + core_.config.window}));
    slot.naks.due = true;
    core_.mark(slot);
}

void Repairer::arm_gap(Slot& slot) {
    slot.naks.at = std::min(slot.naks.at, core_.now + core_.deadlines.gap());
}

Nanoseconds Repairer::next_deadline() const {
    Nanoseconds next = kNever;
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id)
        if (core_.slots.at(id).state == SlotState::active) next = std::min(next, core_.slots.at(id).naks.at);
    return next;
}

void Repairer::on_timeout() {
    for (std::uint64_t id = core_.slots.first_open(); id < core_.slots.next(); ++id) {
        Slot& slot = core_.slots.at(id);
        if (slot.state == SlotState::active && slot.naks.at <= core_.now) on_nak_timer(slot);
    }
}

void Repairer::on_nak_timer(Slot& slot) {
    if (slot.complete_here()) {
        slot.naks.at = kNever;
        return;
    }
    // A root without the data cannot retransmit.
    const bool root_waits = slot.reception.partial && slot.base >= slot.reception.revealed;
    if (root_waits || !root_repairer_.uses_root(slot)) return nak_supplier(slot);
    const std::uint32_t to =
        slot.base < slot.reception.revealed ? slot.reception.revealed : expected_to(slot);
    nak_root(slot, std::min(to, slot.base + core_.config.window));
}

void Repairer::nak_root(Slot& slot, std::uint32_t to) {
    if (!root_repairer_.nak(slot, to)) nak_supplier(slot);
}

void Repairer::nak_supplier(Slot& slot) {
    const bool hole = slot.base < slot.reception.revealed && slot.naks.requested_to < slot.reception.revealed;
    const bool lately = std::exchange(slot.reception.lately, false);
    // Nothing is known to be missing, and no data arrives: the multicast is dead, or the root waits for a
    // slower member, perhaps for this one. A NAK for many fragments would fetch by message data that the root
    // will multicast anyway. So the NAK names a single fragment, and a root keeps that NAK until the fragment
    // has been multicast.
    if (!hole && (nothing_received(slot) || (core_.large(slot) && !in_first_window(slot)))) {
        slot.naks.tested = slot.base;
        slot.naks.at = kNever;
        return request(slot, slot.base + 1);
    }
    if (!hole && !lately) slot.naks.chained = true;
    // The supplier most likely has the fragment, so the answer measures a round trip.
    if (hole) slot.naks.sent_at = core_.now;
    request(slot, hole ? slot.reception.revealed : expected_to(slot));
    slot.naks.at = slot.naks.chained ? kNever : core_.now + core_.deadlines.silence(slot);
}

// A member that receives a NAK for missing data does not wait for its own deadline. Of a large message, or a
// long message of which nothing arrived, only holes count: the rest may not have been sent yet.
void Repairer::forward_nak(Slot& slot) {
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return;
    const bool holes_only = core_.large(slot) || nothing_received(slot);
    const std::uint32_t to = holes_only ? slot.reception.revealed : slot.fragments;
    if (to <= slot.base) return;
    if (root_repairer_.uses_root(slot)) return nak_root(slot, std::min(to, slot.base + core_.config.window));
    request(slot, to);
}

// Continues NAKs while the multicast is silent. In chained state the next window is requested before the
// current window is used up. Before that, each answered NAK is followed by a NAK for twice as many fragments:
// a few fragments may have been lost just before the root began to wait for this member, and a whole window
// would arrive both by message and by multicast.
void Repairer::continue_chain(Slot& slot) {
    // The requested fragment was restored by parity: no answer, and no evidence that the multicast works.
    if (slot.naks.tested != kNothingTested && slot.has(slot.naks.tested)) {
        slot.naks.tested = kNothingTested;
        slot.naks.at = core_.now + core_.deadlines.silence(slot);
    }
    if (slot.naks.reach > 0 && slot.naks.tested == kNothingTested && !slot.naks.chained) {
        std::uint32_t last = std::min(slot.base + slot.naks.reach, slot.fragments) - 1;
        while (slot.has(last)) --last;  // ends at the base, which is missing, at the latest
        slot.naks.tested = last;
        return request(slot, last + 1);
    }
    if (!slot.naks.chained || slot.naks.requested_to >= slot.fragments) return;
    if (slot.naks.requested_to <= slot.base + core_.config.window / 2) request(slot, slot.fragments);
}

// Evaluates an answer besides its bytes: time of a repair along the ring (unless the root was only late),
// usual wait of a deaf member, and whether the multicast is dead.
void Repairer::on_data(Slot& slot, std::uint32_t first, std::uint32_t count) {
    if (slot.state != SlotState::active) return;
    const Nanoseconds hole_sent_at = std::exchange(slot.naks.sent_at, kNever);
    const Nanoseconds first_sent_at = std::exchange(slot.naks.first_sent_at, kNever);
    const bool hole = hole_sent_at != kNever;
    if (hole) core_.round_trip.on_answer(core_.now - hole_sent_at);
    if (first_sent_at != kNever && (hole || !slot.reception.ever))
        core_.policy.note_repair(Route::supplier, core_.now - first_sent_at, core_.round_trip.mean());
    if (!slot.reception.ever && !core_.receives(slot)) {
        slot.reception.ever = true;
        core_.deadlines.on_first(slot, core_.now);
    }
    if (slot.naks.tested == kNothingTested || slot.naks.tested - first >= count) return;
    // The message brings the tested fragment, so the multicast is dead. However, a root that sends each
    // fragment as soon as it has that fragment answers often, and the answer may overtake the multicast. With
    // such a root a second test must give the same result.
    slot.naks.tested = kNothingTested;
    if (slot.reception.partial && !std::exchange(slot.naks.suspected, true)) {
        slot.naks.at = core_.now + core_.deadlines.silence(slot);
        return;
    }
    slot.naks.reach = std::max(1U, slot.naks.reach) * 2;
    if (slot.naks.reach >= core_.config.window) slot.naks.chained = true;
}

bool Repairer::is_stuck(const Slot& slot) const {
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return false;
    const Slot::SupplierNaks& naks = slot.naks;
    if (naks.at != kNever || naks.due) return false;
    if (naks.chained) return !naks.requested.test(slot.base);
    return naks.tested == kNothingTested || slot.has(naks.tested) || !naks.requested.test(naks.tested);
}

bool Repairer::make_message(Slot& slot, Effect& effect) {
    slot.naks.due = false;
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return false;
    const std::uint32_t to = std::min(std::max(slot.naks.to, slot.base), slot.base + core_.config.window);
    std::fill(core_.bits.begin(), core_.bits.end(), std::byte{0});
    std::uint32_t last = slot.base;
    for (std::uint32_t index = slot.base; index < to; ++index) {
        if (slot.has(index) || slot.naks.requested.test(index)) continue;
        slot.naks.requested.set(index);
        wire::set_bit(core_.bits.data(), index - slot.base);
        last = index + 1;
    }
    slot.naks.requested_to = std::max(slot.naks.requested_to, to);
    if (last == slot.base) return false;
    if (slot.naks.first_sent_at == kNever) slot.naks.first_sent_at = core_.now;
    const std::size_t length = (last - slot.base + 7) / 8;
    ++core_.counters.naks_sent;
    return core_.message(effect, wire::Kind::nak, slot.supplier, slot.id, slot.base, slot.bytes,
                         Bytes(core_.bits).first(length));
}

}  // namespace mcastcoll::engine
