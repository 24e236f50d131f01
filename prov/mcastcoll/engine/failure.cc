// Whoever waits for somebody longer than the watch delay has that process watched. When one is lost, the
// first to know tells all the others, and every operation of the group ends with an error: nobody waits for a
// dead member.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::on_peer_lost(Rank rank, int error, Nanoseconds now) {
    now_ = now;
    if (phase_ == Phase::failed || phase_ == Phase::left || index_of(rank) >= config_.members) return;
    fail(rank, error, true, now);
}

void Engine::fail(Rank lost, int error, bool tell, Nanoseconds now) {
    if (phase_ == Phase::failed || phase_ == Phase::left) return;
    now_ = now;
    // Who has closed and has nothing open has lost nothing, and a member may be gone lawfully once everybody
    // has left. The others are told all the same: one of them may have waited for what only this member or
    // the lost one could supply.
    const bool only_lingered = departure_.closing() && idle() && phase_ == Phase::active;
    phase_ = Phase::failed;
    failure_.begin(lost, error, tell);
    lingered_ = only_lingered && tell;
    if (!only_lingered)
        notices_.failed();
    else if (!tell)
        notices_.left();
    for (std::uint64_t id = slots_.first_open(); id < slots_.next(); ++id) {
        Slot& slot = slots_.at(id);
        if (slot.state != SlotState::active) continue;
        slot.state = SlotState::finished;
        complete(slot.id, error);
    }
    slots_.close_all();
    for (std::uint64_t id = slots_.next(); !pending_.empty(); pending_.pop())
        complete(operation_of(id++), error);
    watch_at_ = kNever;
    doubts_.stop();
    readiness_.stop();
    watermark_.stop_asking();
    // A probe that was still to go out would be the last, and with it the group would be joined.
    poll_.cancel();
    while (!pushes_.empty()) pushes_.pop();
    while (!holds_.empty()) holds_.pop();
    notices_.forget_gathered();
}

void Engine::on_fail(const wire::Header& header, Nanoseconds now) {
    const auto code = static_cast<int>(header.total & 0xffff);
    fail(rank_of(index_of(header.fragment)), code == 0 ? EIO : code, false, now);
}

bool Engine::next_failure_message(Effect& effect) {
    if (phase_ != Phase::failed) return false;
    if (const Rank to = failure_.next(); to != kNoRank) {
        make_message(effect, wire::Kind::fail, to, operation_of(slots_.next()), index_of(failure_.lost()),
                     static_cast<std::uint64_t>(failure_.error()), {});
        return true;
    }
    // Only now: who hears that we have left may destroy us.
    if (std::exchange(lingered_, false)) notices_.left();
    return false;
}

void Engine::watch(Rank rank) {
    if (rank != kNoRank && rank != config_.self) watches_.ask(rank);
}

bool Engine::waits_for_somebody() const {
    if (phase_ != Phase::active || departure_.closing() || !idle() ||
        slots_.first_open() - slots_.first_kept() >= config_.checkpoint_interval())
        return true;
    for (std::uint64_t id = slots_.first_kept(); id < slots_.first_open(); ++id)
        if (owes_report(slots_.at(id))) return true;
    return false;
}

// Finished here, but the root waits for what this member's subtree has.
bool Engine::owes_report(const Slot& slot) const {
    return slot.state == SlotState::finished && is_large(slot) && slot.report_to != kNoRank &&
           slot.reported != slot.fragments;
}

// Whom an operation waits for directly. Whoever they wait for, they watch themselves.
void Engine::watch_slot(const Slot& slot) {
    if (!slot.complete_here()) {
        watch(slot.supplier);
        watch(slot.operation.root);
    }
    if (gathers(slot.operation.kind))
        for (std::uint32_t i = 0; i < tree_children_.count; ++i)
            if ((slot.gathered >> i & 1) == 0) watch(tree_children_.ranks[i]);
    if (awaits_credit(slot)) watch(tree_parent_);
    if (!is_large(slot)) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i)
        if (slot.clients[i].expected && !slot.clients[i].done) watch(slot.clients[i].rank);
    for (Rank child : slot.report_children) watch(child);
}

// The child in the gather tree that an operation waits for, or kNoRank.
Rank Engine::missing_child(const Slot& slot) const {
    if (gathers(slot.operation.kind))
        for (std::uint32_t i = 0; i < tree_children_.count; ++i)
            if ((slot.gathered >> i & 1) == 0) return tree_children_.ranks[i];
    return kNoRank;
}

// Whom an operation waits for, as far as this member can know. The one named may wait itself.
Rank Engine::waits_for(const Slot& slot) const {
    if (const Rank child = missing_child(slot); child != kNoRank) return child;
    if (awaits_credit(slot)) return tree_parent_;
    const bool brings_bytes = reduces(slot.operation.kind) || slot.is_root(config_.self);
    if (brings_bytes && slot.operation.ready < slot.operation.bytes) return config_.self;
    if (!slot.complete_here())
        return slot.base == 0 && !slot.heard_ever ? slot.operation.root : slot.supplier;
    for (std::uint32_t i = 0; i < slot.client_count; ++i)
        if (slot.clients[i].expected && !slot.clients[i].done) return slot.clients[i].rank;
    for (Rank child : slot.report_children) {
        const auto* report = std::find_if(slot.reports.begin(), slot.reports.end(),
                                          [child](const ChildReport& r) { return r.rank == child; });
        if (report == slot.reports.end() || report->fragments == kNothingReported ||
            report->fragments < slot.fragments)
            return child;
    }
    return kNoRank;
}

// An operation that has not come closer to its end for too long ends the group, when the user wants that.
void Engine::check_stall(Nanoseconds now) {
    if (config_.stall_timeout == kNever || phase_ != Phase::active) return;
    for (std::uint64_t id = slots_.first_open(); id < slots_.next(); ++id) {
        const Slot& slot = slots_.at(id);
        if (slot.state != SlotState::active) continue;
        // Who waits for a release waits for what rank 0 knows better.
        const bool knows = !releases(slot.operation.kind) || missing_child(slot) != kNoRank ||
                           awaits_credit(slot) || slot.awaits_release;
        const std::int64_t patience =
            config_.stall_timeout.value + (knows ? 0 : config_.stall_timeout.value / 4);
        if (slot.progress_at + Nanoseconds{patience} <= now)
            return fail(waits_for(slot), ETIMEDOUT, true, now);
    }
    if (pending_.empty() || moved_at_ + config_.stall_timeout > now) return;
    // Nothing is open here: what is queued waits for others to finish what this member has.
    Rank behind = tree_parent_;
    for (const Rank child : watermark_.behind(finished_here())) behind = child;
    fail(behind, ETIMEDOUT, true, now);
}

void Engine::scan_watches(Nanoseconds now) {
    check_stall(now);
    if (phase_ == Phase::failed) return;
    if (!waits_for_somebody()) {
        watch_at_ = kNever;
        return;
    }
    watch_at_ = now + config_.watch_delay;
    if (phase_ != Phase::active || departure_.closing()) {
        // Joining and leaving wait for the whole tree, everybody for those next to it.
        watch(tree_parent_);
        for (Rank child : tree_children_) watch(child);
    }
    if (phase_ != Phase::active) return;
    for (std::uint64_t id = slots_.first_kept(); id < slots_.next(); ++id) {
        Slot& slot = slots_.at(id);
        if (slot.state == SlotState::active && slot.posted_at + config_.watch_delay <= now) {
            watch_slot(slot);
            announce(slot);
        }
        if (!owes_report(slot)) continue;
        for (Rank child : slot.report_children) watch(child);
    }
    for (const Rank child : watermark_.behind(finished_here())) watch(child);
    if (!pending_.empty()) watch(tree_parent_);
}

bool Engine::next_watch(Effect& effect) {
    const Rank rank = watches_.take();
    if (rank == kNoRank) return false;
    effect = {.kind = Effect::Kind::watch, .to = rank};
    return true;
}

}  // namespace mcastcoll::engine
