// Whoever waits for somebody longer than the watch delay has that process watched. When one is lost, the
// first to know tells all the others, and every operation of the group ends with an error: nobody waits for a
// dead member.
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
    const bool only_lingered = closing_ && idle() && phase_ == Phase::active;
    phase_ = Phase::failed;
    error_ = error;
    lost_ = lost;
    fail_tell_ = tell;
    notice_failed_ = !only_lingered;
    lingered_ = only_lingered;
    if (!tell) notice_left_ = lingered_;
    for (std::uint64_t id = first_open_; id < next_id_; ++id) {
        Slot& slot = slot_at(id);
        if (slot.state != SlotState::active) continue;
        slot.state = SlotState::finished;
        complete(slot.operation.cookie, error);
    }
    first_open_ = next_id_;
    while (!pending_.empty()) {
        complete(pending_.front().cookie, error);
        pending_.pop();
    }
    watch_at_ = probe_at_ = vote_at_ = kNever;
    while (!pushes_.empty()) pushes_.pop();
}

void Engine::on_fail(const wire::Header& header, Nanoseconds now) {
    const auto code = static_cast<int>(header.total & 0xffff);
    fail(rank_of(index_of(header.fragment)), code == 0 ? EIO : code, false, now);
}

bool Engine::next_failure_message(Effect& effect) {
    if (phase_ != Phase::failed || !fail_tell_) return false;
    while (fail_next_ < config_.members) {
        const Rank to = rank_of(fail_next_++);
        if (to == config_.self || to == lost_) continue;
        make_message(effect, wire::Kind::fail, to, operation_of(next_id_), index_of(lost_),
                     static_cast<std::uint64_t>(error_), {});
        return true;
    }
    // Only now: who hears that we have left may destroy us.
    if (std::exchange(lingered_, false)) notice_left_ = true;
    return false;
}

void Engine::watch(Rank rank) {
    if (rank == kNoRank || rank == config_.self || watched_[index_of(rank)]) return;
    watched_[index_of(rank)] = true;
    watches_.push(rank);
}

bool Engine::waits_for_somebody() const {
    return phase_ != Phase::active || closing_ || !idle() || first_open_ - floor_ >= config_.checkpoint_every;
}

// Whom an operation waits for directly. Whoever they wait for, they watch themselves.
void Engine::watch_slot(const Slot& slot) {
    if (!slot.complete_here()) {
        watch(slot.supplier);
        watch(slot.operation.root);
    }
    if (slot.operation.kind == OperationKind::barrier && slot.gathered < tree_children_.count)
        for (Rank child : tree_children_) watch(child);
    if (!is_large(slot)) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i)
        if (slot.clients[i].expected && !slot.clients[i].done) watch(slot.clients[i].rank);
    for (Rank child : slot.report_children) watch(child);
}

void Engine::scan_watches(Nanoseconds now) {
    if (!waits_for_somebody()) {
        watch_at_ = kNever;
        return;
    }
    watch_at_ = now + config_.watch_delay;
    if (phase_ != Phase::active || closing_) {
        // Joining and leaving wait for the whole tree: the leader for all, everybody for those next to it.
        watch(tree_parent_);
        watch(rank_of(0));
        if (config_.self == rank_of(0) && phase_ != Phase::active)
            for (std::uint32_t i = 1; i < config_.members; ++i) watch(rank_of(i));
        for (Rank child : tree_children_) watch(child);
        return;
    }
    for (std::uint64_t id = first_open_; id < next_id_; ++id) {
        const Slot& slot = slot_at(id);
        if (slot.state == SlotState::active && slot.posted_at + config_.watch_delay <= now) watch_slot(slot);
    }
    const std::uint64_t finished = first_open_ - first_open_ % config_.checkpoint_every;
    for (std::uint32_t i = 0; i < tree_children_.count; ++i)
        if (child_floor_[i] < finished) watch(tree_children_.ranks[i]);
    if (!pending_.empty()) watch(tree_parent_);
}

bool Engine::next_watch(Effect& effect) {
    if (watches_.empty()) return false;
    effect = {.kind = Effect::Kind::watch, .to = watches_.front()};
    watches_.pop();
    return true;
}

}  // namespace mcastcoll::engine
