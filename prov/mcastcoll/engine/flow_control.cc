#include "engine/flow_control.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::engine {

std::uint32_t FlowControl::limit(const Slot& slot) const {
    if (!core_.large(slot)) return slot.fragments;
    return std::min(slot.fragments, slot.multicasting.acknowledged + core_.config.window);
}

// A root's large operations share one window. The oldest of them may always go as far as makes its receivers
// report: many that have a little unreported each would otherwise fill the window for good.
bool FlowControl::is_full(const Slot& slot) const {
    if (in_flight_ < core_.config.window) return false;
    if (slot.multicasting.next - slot.multicasting.acknowledged >= core_.config.report_step()) return true;
    for (std::uint64_t id = core_.slots.first_open(); id < number_of(slot.id); ++id) {
        const Slot& older = core_.slots.at(id);
        if (older.state == SlotState::active && core_.large(older) && core_.is_root(older) &&
            older.multicasting.acknowledged < older.fragments)
            return true;
    }
    return false;
}

// Recomputes what this member's subtree has; a root learns how far it may go, the others tell their parent
// now and then.
void FlowControl::update_large(Slot& slot) {
    std::uint32_t least = slot.base;
    for (Rank child : slot.reporting.children) {
        const ChildReport* report = slot.reporting.of(child);
        if (report == nullptr || report->fragments == kNothingReported) return;
        least = std::min(least, report->fragments);
    }
    if (core_.is_root(slot)) return acknowledge(slot, least);
    if (slot.reporting.parent == kNoRank) return;
    // At the same places on all levels, so that no level's patience adds to another's.
    const std::uint32_t step = core_.config.report_step();
    // That it has posted is news where the root will wait for it: who is silent is blamed for a stall.
    const bool is_first = slot.reporting.told == kNothingReported;
    const std::uint32_t before = is_first ? 0 : slot.reporting.told;
    const bool due = (is_first && slot.fragments > core_.config.window) || least / step > before / step ||
                     (least == slot.fragments && (is_first || slot.reporting.told != least));
    if (!due) return;
    slot.reporting.told = least;
    slot.reporting.due = true;
    core_.mark(slot);
}

void FlowControl::acknowledge(Slot& slot, std::uint32_t least) {
    if (slot.reporting.children.count == 0 || slot.state != SlotState::active) return;
    const std::uint32_t sent =
        std::max(slot.multicasting.next, least);  // what everybody has needs no sending
    in_flight_ += sent - slot.multicasting.next;
    in_flight_ -= least - slot.multicasting.acknowledged;
    if (sent > slot.multicasting.next) slot.multicasting.target = 0;
    slot.multicasting.next = sent;
    slot.multicasting.acknowledged = least;
    core_.mark(slot);
    check_finished(slot);
}

void FlowControl::on_all_here(Slot& slot) {
    slot.done_due = !core_.is_root(slot);
    update(slot);  // with which a root may be finished at once
    check_finished(slot);
}

// A large message stays in the caller's buffer until whoever this member supplies has it; a root also waits
// until every member that hears it has it, which is what keeps it from running away from a slow one.
void FlowControl::check_finished(Slot& slot) {
    if (slot.state != SlotState::active || !slot.complete_here()) return;
    for (const Client& client : slot.known_clients())
        if (client.unserved()) return;
    if (core_.relays(slot) && slot.multicasting.next < slot.fragments) return;
    if (core_.is_root(slot) && slot.reporting.children.count > 0 &&
        slot.multicasting.acknowledged < slot.fragments)
        return;
    if (core_.is_root(slot)) in_flight_ -= slot.multicasting.next - slot.multicasting.acknowledged;
    core_.finish(slot);
}

void FlowControl::on_report(const wire::Header& header) {
    Slot* slot = core_.hear_of(header.operation);
    if (slot == nullptr) return;
    ChildReport* report = slot->reporting.of(header.sender);
    if (report == nullptr) return drop(core_.counters.bad_sender);
    const std::uint32_t fragments = index_of(header.fragment);
    if (report->fragments == kNothingReported || fragments > report->fragments) {
        report->fragments = fragments;
        slot->progress_at = core_.now;
    }
    update(*slot);
}

void FlowControl::on_done(const wire::Header& header) {
    Slot* slot = core_.hear_of(header.operation);
    if (slot == nullptr) return;
    Client* client = slot->client(header.sender);
    if (client == nullptr) return drop(core_.counters.bad_sender);
    client->done = true;
    slot->progress_at = core_.now;
    client->waiting = false;
    check_finished(*slot);
}

bool FlowControl::make_message(Slot& slot, Effect& effect) {
    if (std::exchange(slot.reporting.due, false)) {
        ++core_.counters.reports_sent;
        return core_.message(effect, wire::Kind::report, slot.reporting.parent, slot.id, slot.reporting.told,
                             slot.bytes);
    }
    slot.done_due = false;
    return core_.message(effect, wire::Kind::done, slot.supplier, slot.id, 0, slot.bytes);
}

}  // namespace mcastcoll::engine
