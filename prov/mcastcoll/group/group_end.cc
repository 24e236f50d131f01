// How a group ends before its time: members that are gone, operations that stand still, and the word of it.
#include <fmt/core.h>

#include "base/attempt.h"
#include "group/group.h"
#include "group/group_news.h"

namespace mcastcoll::group {
namespace {

void tell_of_end([[maybe_unused]] Port& port, [[maybe_unused]] std::vector<Outbox::Peer> whom,
                 [[maybe_unused]] const wire::Ended& word) {
#ifndef MCC_BREAK_DEATH_PASSED_ON  // the simulator must notice: what has failed tells nobody
    port.tell_for_good(std::move(whom), wire::encode(word));
#endif
}

}  // namespace

void Group::on_peer_lost(Outbox::Peer peer, int error, const std::string& reason) {
    if (!formed()) return;
    for (const Rank rank : roster_.ranks_at(peer)) {
        losses_.add(rank, error, reason);
        touched_ = true;
    }
}

// The engine tells its members itself, and forgives who has left in peace. So does this: of those that are in
// no engine with this member, whoever has done its share of what is open may close the group and be gone.
void Group::on_lost(const Losses::Loss& loss, Nanoseconds now) {
    if (levels_->engine_loses(loss.rank, loss.error, now) || state_ == State::closed) return;
    if (!joined() || roster_.doubted(loss.rank)) return fail(loss, now);
    levels_->lose(loss.rank);
    losses_.let_go(loss);
}

void Group::doubt(Rank rank, Nanoseconds now) {
    if (error() != 0 || rank == plan_.self || !roster_.doubt(rank, now)) return;
    const Roster::Member& member = roster_.at(static_cast<std::uint32_t>(index_of(rank)));
    port_.look_at(member.peer, member.watch_point, now);
}

void Group::on_abort(std::uint32_t error, Rank lost, Nanoseconds now) {
    const int code = static_cast<int>(error);
    if (!formed()) return end_join(code);
    fail({index_of(lost) < roster_.size() ? lost : kNoRank, code}, now);
    touched_ = true;
}

void Group::on_waiting(Rank from) {
    if (error() != 0 && roster_.answer(from))
        tell_of_end(port_, {roster_.at(static_cast<std::uint32_t>(index_of(from))).peer}, ended_word());
}

wire::Ended Group::ended_word() const {
    return {id(), static_cast<std::uint32_t>(failure_.error), failure_.rank};
}

// Before the welcome. Who has been welcomed and cannot follow tells the others.
void Group::end_join(int error) {
    if (state_ != State::greeting) return;
    state_ = State::over;
    attempt([&] { port_.warn("join failed: " + port_.text_of(error)); });
    attempt([&] {
        port_.remember_ended(error);
        join_.fail(error);
        if (join_.leads()) return;
        port_.tell_for_good(roster_.all_peers(),
                            wire::encode(wire::Ended{id(), static_cast<std::uint32_t>(error), kNoRank}));
    });
    port_.join_ended(error);
}

void Group::fail(const Losses::Loss& loss, Nanoseconds now) {
    if (loss.error == 0 || error() != 0) return;
    const State before = state_;
    if (before == State::forming) state_ = State::over;
    if (before == State::joined) state_ = State::failed;
    break_off(loss, before, now);
}

// Each step for itself: it may be for want of memory that the group ends.
void Group::break_off(const Losses::Loss& loss, State before, Nanoseconds now) {
    failure_ = loss;
    port_.changed();
    attempt([&] {
        port_.warn(
            fmt::format("failed: {}{}", port_.text_of(loss.error),
                        describe_loss(port_, *levels_, loss.error, loss.rank, losses_.reason(loss.rank))));
    });
    levels_->fail(loss.error, loss.rank, now);
    attempt([&] {
        const bool had_joined = before != State::forming;
        tell_of_end(port_, roster_.peers_of(whom_to_tell(levels_->placement(), loss.rank, had_joined)),
                    ended_word());
    });
    attempt([&] { levels_->carry_out(now); });
    if (before == State::forming) {
        attempt([&] { port_.warn("join failed: " + port_.text_of(loss.error)); });
        if (join_.leads())
            attempt([&] {
                port_.remember_ended(loss.error);
                join_.fail(loss.error);
            });
    }
    if (state_ == State::over) port_.join_ended(loss.error);
    if (state_ == State::failed) port_.failed(loss.error, loss.rank);
}

void Group::break_down(int error, Nanoseconds now) noexcept {
    touched_ = true;
    unfinished_ = false;
    if (formed())
        fail({kNoRank, error}, now);
    else
        end_join(error);
    // Their buffers are the application's again.
    port_.multicast().forget_payloads();
}

}  // namespace mcastcoll::group
