#include "engine/flow_control.h"

namespace mcastcoll::engine {

std::uint32_t FlowControl::limit(const Slot& slot) const {
    if (!core_.large(slot)) return slot.fragments;
    return std::min(slot.fragments,
                    slot.multicasting.acknowledged + core_.redundancy.window(core_.config.window));
}

// A root's large operations share one window. The oldest may always send up to the next report step:
// otherwise many operations with few unreported fragments each could fill the window for good.
bool FlowControl::is_full(const Slot& slot) const {
    if (in_flight_ < core_.redundancy.window(core_.config.window)) return false;
    if (slot.multicasting.next - slot.multicasting.acknowledged >= core_.config.report_step(slot.fragments))
        return true;
    for (std::uint64_t id = core_.slots.first_open(); id < number_of(slot.id); ++id) {
        const Slot& older = core_.slots.at(id);
        if (older.state == SlotState::active && core_.large(older) && core_.is_root(older) &&
            older.multicasting.acknowledged < older.fragments)
            return true;
    }
    return false;
}

// Recomputes the progress of this member's subtree. A root updates its limit; other members report to their
// parent in steps.
void FlowControl::update_large(Slot& slot) {
    std::uint32_t min = slot.base;
    for (Rank child : slot.reporting.children) {
        const Slot::ChildReport* report = slot.reporting.of(child);
        if (report == nullptr || report->fragments == kNothingReported) return;
        min = std::min(min, report->fragments);
    }
    if (core_.is_root(slot)) {
        if (slot.reporting.children.count == 0 || slot.state != SlotState::active) return;
        Slot::Multicasting& mine = slot.multicasting;
        // Fragments that all members have need not be sent.
        const std::uint32_t sent = std::max(mine.next, min);
        in_flight_ += sent - mine.next;
        in_flight_ -= min - mine.acknowledged;
        if (sent > mine.next) mine.target = 0;
        mine.next = sent;
        mine.acknowledged = min;
        core_.mark(slot);
        return check_finished(slot);
    }
    if (slot.reporting.parent == kNoRank) return;
    // Members on all levels of the tree report at the same places, so that delays do not add up.
    const std::uint32_t step = core_.config.report_step(slot.fragments);
    // If the message is longer than the window, a first report shows that this member has posted: the root
    // would blame a member without a report for a stall.
    const bool is_first = slot.reporting.reported == kNothingReported;
    const std::uint32_t before = is_first ? 0 : slot.reporting.reported;
    const bool due = (is_first && slot.fragments > core_.config.window) || min / step > before / step ||
                     (min == slot.fragments && (is_first || slot.reporting.reported != min));
    if (!due) return;
    slot.reporting.reported = min;
    slot.reporting.due = true;
    core_.mark(slot);
}

void FlowControl::on_all_here(Slot& slot) {
    slot.done_due = !core_.is_root(slot);
    update(slot);  // may finish a root's operation
    check_finished(slot);
}

// A large message stays in the caller's buffer until this member's clients have the data. A root also waits
// for every receiving member, so that it cannot overrun a slow member.
void FlowControl::check_finished(Slot& slot) {
    if (slot.state != SlotState::active || !slot.complete_here()) return;
    if (may_be_needed(slot)) return linger(slot);
    if (core_.is_root(slot)) in_flight_ -= slot.multicasting.next - slot.multicasting.acknowledged;
    core_.finish(slot);
}

bool FlowControl::may_be_needed(const Slot& slot) const {
    if (std::ranges::any_of(slot.known_clients(), &Slot::Client::unserved)) return true;
    if (core_.relays(slot) && slot.multicasting.next < slot.fragments) return true;
    return core_.is_root(slot) && slot.reporting.children.count > 0 &&
           slot.multicasting.acknowledged < slot.fragments;
}

// Peers mostly have the message by now and need a moment to send `done`. A peer that is not scheduled takes
// long, and is not waited for if a buffer for a copy is free, so that a late process does not delay its
// peers.
void FlowControl::linger(Slot& slot) {
    if (slot.lingers || slot.completed_early() || slot.operation.kind != CollectiveKind::broadcast ||
        slot.bytes > core_.config.late_bytes)
        return;
    const Nanoseconds moment = std::max(core_.round_trip.mean(), core_.config.min_gap);
    slot.lingers = lingering_.push({slot.id, core_.now + moment});
}

void FlowControl::on_timeout() {
    for (std::size_t left = lingering_.size(); left > 0 && next_deadline() <= core_.now; --left) {
        Slot* const slot = core_.slots.find_active(lingering_.front().operation);
        lingering_.pop();
        if (slot == nullptr) continue;
        slot->lingers = false;
        if (core_.is_root(*slot) && slot->multicasting.next < slot->fragments)
            linger(*slot);
        else if (may_go_on(*slot))
            core_.finish_early(*slot);
    }
}

// Where packets are lost, a caller that continues with its computation would answer NAKs late.
bool FlowControl::may_go_on(const Slot& slot) const {
    const auto awaits_repair = [](const Slot::Client& client) {
        return client.sent_nak && client.unserved();
    };
    return core_.redundancy.lossless() && std::ranges::none_of(slot.known_clients(), awaits_repair);
}

void FlowControl::on_report(const wire::Header& header) {
    Slot* slot = core_.claim_early(header.operation);
    if (slot == nullptr) return;
    Slot::ChildReport* report = slot->reporting.of(header.sender);
    if (report == nullptr) return drop(core_.counters.bad_sender);
    const std::uint32_t fragments = index_of(header.fragment);
    if (report->fragments == kNothingReported || fragments > report->fragments) {
        report->fragments = fragments;
        slot->progress_at = core_.now;
    }
    update(*slot);
}

void FlowControl::on_done(const wire::Header& header) {
    Slot* slot = core_.claim_early(header.operation);
    if (slot == nullptr) return;
    Slot::Client* client = slot->client(header.sender);
    if (client == nullptr) return drop(core_.counters.bad_sender);
    client->done = true;
    client->wanted.clear();
    slot->progress_at = core_.now;
    check_finished(*slot);
}

bool FlowControl::make_message(Slot& slot, Effect& effect) {
    if (std::exchange(slot.reporting.due, false)) {
        ++core_.counters.reports_sent;
        return core_.message(effect, wire::Kind::report, slot.reporting.parent, slot.id,
                             slot.reporting.reported, slot.bytes);
    }
    slot.done_due = false;
    return core_.message(effect, wire::Kind::done, slot.supplier, slot.id, 0, slot.bytes);
}

}  // namespace mcastcoll::engine
