// How a group ends before its time: members that are gone, operations that stand still, and the word of it.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>

#include "base/attempt.h"
#include "group/group.h"
#include "group/group_news.h"

namespace mcastcoll::group {

void Group::on_peer_lost(Outbox::Peer peer, int error, const std::string& reason) {
    if (!formed()) return;
    for (const Rank rank : roster_.ranks_at(peer)) lose(rank, error, reason);
}

void Group::lose(Rank rank, int error, const std::string& reason) {
    losses_.add(rank, error, reason);
    touched_ = true;
}

// The engine tells its members itself, and forgives who has left in peace. So does this: of those that are in
// no engine with this member, whoever has done its share of what is open may close the group and be gone.
void Group::on_lost(Rank rank, int error, Nanoseconds now) {
    if (levels_->engine_loses(rank, error, now) || closed_) return;
    if (!joined_ || roster_.doubted(rank)) return fail(error, rank, now);
    levels_->lose(rank);
    losses_.let_go({rank, error});
}

void Group::check_departed(Nanoseconds now) {
    if (error_ == 0)
        fail_for(losses_.needed([this](std::uint32_t rank) { return levels_->needs(rank); }), now);
}

void Group::fail_for(const Losses::Loss& loss, Nanoseconds now) {
    if (loss.error != 0) fail(loss.error, loss.rank, now);
}

// When operations that came no further have waited too long. The engine sees to its own members; where there
// is one it knows better who is late, so the patience of the others is longer.
Nanoseconds Group::stall_at() const {
    const Nanoseconds patience = plan_.means.stall_timeout;
    if (patience == kNever || error_ != 0 || open_operations() == 0 || !levels_->waits_outside_engine())
        return kNever;
    const bool alone = levels_->placement().hosts() == 1;
    return moved_at_ + (alone ? patience : patience + Nanoseconds{patience.value / 2});
}

// Each step for itself: it may be for want of memory that the group ends.
void Group::fail(int error, Rank lost, Nanoseconds now) {
    if (error_ != 0) return;
    error_ = error;
    lost_ = lost;
    port_.changed();
    attempt([&] {
        port_.warn(fmt::format("failed: {}{}", port_.text_of(error),
                               describe_loss(port_, *levels_, error, lost, losses_.reason(lost))));
    });
    levels_->fail(error, lost, now);
    attempt([&] { tell_others(); });
    attempt([&] { levels_->carry_out(now); });
    if (!joined_) return end_join(error);
    if (!closed_) port_.failed(error, lost);
}

void Group::break_down(int error, Nanoseconds now) noexcept {
    touched_ = true;
    unfinished_ = false;
    if (formed())
        fail(error, kNoRank, now);
    else
        end_join(error);
    // Their buffers are the application's again.
    port_.multicast().forget_payloads();
}

void Group::tell_others() {
    tell_of_end(roster_.peers_of(whom_to_tell(levels_->placement(), lost_, joined_)));
}

void Group::tell_of_end([[maybe_unused]] std::vector<Outbox::Peer> whom) {
#ifndef MCC_BREAK_DEATH_PASSED_ON  // the simulator must notice: what has failed tells nobody
    port_.tell_for_good(std::move(whom), wire::encode(ended_word()));
#endif
}

// Who is waited for long beyond the engine's members may have died, or may have failed with nobody left to
// say so: the leader of a host tells those that it leads, but not when it has closed the group. So the
// process is watched, and as long as it is waited for it is asked. By datagram, which needs no connection: it
// may compute.
void Group::look_after_late(Nanoseconds now) {
    for (const std::uint32_t rank : levels_->take_awaited_long()) {
        const Roster::Member& member = roster_.at(rank);
        port_.watch(member.peer, member.watch_point, now);
        late_.add(rank, now);
    }
}

void Group::ask_late(Nanoseconds now) {
    const std::uint32_t attempt = late_.ask(error_ == 0 && open_operations() > 0, now);
    if (error_ != 0) return;
    const wire::ByteString question = wire::encode(wire::Waiting{id(), plan_.self});
    for (const std::uint32_t rank : late_.ranks())
        if (levels_->needs(rank)) port_.send(rank_of(rank), attempt, question);
}

void Group::on_waiting(Rank from) {
    if (error_ != 0 && roster_.answer(from))
        tell_of_end({roster_.at(static_cast<std::uint32_t>(index_of(from))).peer});
}

topology::ReportedGroup Group::report() const {
    topology::ReportedGroup report = levels_->report();
    report.state = error_ != 0 ? "failed: " + port_.text_of(error_) : joined_ ? "ready" : "forming";
    return report;
}

}  // namespace mcastcoll::group
