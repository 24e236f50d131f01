#include "group/group.h"

#include <algorithm>
#include <cerrno>

#include "base/attempt.h"
#include "group/group_news.h"

namespace mcastcoll::group {
namespace {

// The cookie of the barrier that ends a join over several levels.
constexpr std::uint64_t kJoinCookie = UINT64_MAX;

}  // namespace

Group::Group(const Plan& plan, Port& port)
    : plan_(plan),
      port_(port),
      join_(plan.id, plan.self, plan.members, plan.deadline, port),
      sequence_(plan.id.sequence) {}

void Group::start(Nanoseconds now) {
    join_.start(now);
    follow_join(now);
}

void Group::on_hello(const wire::Hello& hello, Nanoseconds now) {
    join_.on_hello(hello, now);
    follow_join(now);
}

void Group::follow_join(Nanoseconds now) {
    if (formed() || ended_) return;
    if (join_.state() == Join::State::complete) return welcome_everybody(now);
    if (join_.error() != 0) end_join(join_.error());
}

void Group::welcome_everybody(Nanoseconds now) {
    wire::Welcome welcome = make_welcome(plan_.id, join_.guests(), join_.places(),
                                         {plan_.settings, plan_.policy, plan_.selection});
    if (const int error = port_.multicast().offer(welcome, join_.guests()); error != 0)
        return end_join(error);
    if (const int error = join_.welcome(welcome); error != 0) return end_join(error);
    begin(welcome, now);
}

void Group::on_welcome(const wire::Welcome& welcome, Nanoseconds now) {
    if (join_.accept(welcome)) begin(welcome, now);
}

void Group::begin(const wire::Welcome& welcome, Nanoseconds now) {
    if (const int error = roster_.fill(welcome.peers, plan_.self, port_); error != 0) return end_join(error);
    agreed_ = {.repair = static_cast<engine::Repair>(welcome.repair),
               .channels = welcome.channels,
               .root_sync = static_cast<engine::RootSync>(welcome.root_sync),
               .root_delay_us = welcome.root_delay_us};
    sequence_ = welcome.sequence;
    make_levels(welcome, now);
    port_.keyed();
    move(now);
}

// All or nothing: who has no memory for the levels has none of them.
void Group::make_levels(const wire::Welcome& welcome, Nanoseconds now) {
    levels::Owner& owner = *this;
    levels_ = std::make_unique<LevelSet>(welcome, plan_.self, plan_.means, roster_, port_, owner);
    try {
        if (const int error = levels_->start(now); error != 0) fail(error, kNoRank, now);
    } catch (...) {
        levels_.reset();
        throw;
    }
}

// A join over several levels ends with a barrier over all of them.
void Group::check_formed(Nanoseconds now) {
    if (error_ != 0 || !levels_->engine_joined()) return;
    if (!levels_->several()) return on_joined();
    if (barrier_posted_ || !levels_->connected()) return;
    barrier_posted_ = true;
    levels::Request barrier;
    barrier.kind = levels::Kind::barrier;
    barrier.cookie = kJoinCookie;
    if (const int error = levels_->planner().submit(barrier, now); error != 0)
        return fail(error, kNoRank, now);
    move(now);
}

void Group::on_joined() {
    joined_ = true;
    port_.changed();
    tell_joined(port_, *levels_, plan_.self);
    port_.join_ended(0);
}

void Group::doubt(Rank rank, Nanoseconds now) {
    if (error_ != 0 || rank == plan_.self || !roster_.doubt(rank, now)) return;
    const Roster::Member& member = roster_.at(static_cast<std::uint32_t>(index_of(rank)));
    port_.look_at(member.peer, member.watch_point, now);
}

void Group::on_abort(std::uint32_t error, Rank lost, Nanoseconds now) {
    const int code = static_cast<int>(error);
    if (!formed()) return end_join(code);
    fail(code, index_of(lost) < roster_.size() ? lost : kNoRank, now);
    touched_ = true;
}

// The join is over without a group.
void Group::end_join(int error) {
    if (ended_ || joined_) return;
    ended_ = true;
    attempt([&] { port_.warn("join failed: " + port_.text_of(error)); });
    if (!formed() || leads()) attempt([&] { refuse_join(error); });
    if (!closed_) port_.join_ended(error);
}

// Who has been welcomed and cannot follow tells the others.
void Group::refuse_join(int error) {
    port_.remember_ended(error);
    join_.fail(error);
    if (leads()) return;
    port_.tell_for_good(roster_.all_peers(),
                        wire::encode(wire::Ended{id(), static_cast<std::uint32_t>(error), lost_}));
}

void Group::on_message(Bytes message, Nanoseconds now) {
    touched_ = true;
    if (formed() && message.size() >= wire::kHeaderBytes) levels_->on_message(message, now);
}

bool Group::on_datagram(Bytes bytes, Nanoseconds now) {
    touched_ = true;
    engine::Engine* const engine = formed() ? levels_->engine() : nullptr;
    if (engine == nullptr) return false;
    const std::uint64_t valid_before = engine->counters().datagrams_received;
    engine->on_packet(bytes, now);
    return engine->counters().datagrams_received > valid_before;
}

int Group::submit(const levels::Request& request, Nanoseconds now) {
    const bool first = open_operations() == 0;
    const int error = levels_->planner().submit(request, now);
    if (error != 0) return error;
    if (first) moved_at_ = now;
    if (first) late_.resume(now);
    attempt([&] { tell_selection(port_, *levels_); });
    return 0;
}

// What one level got may be what another waits for, until nothing more comes of it. Not for ever: other
// processes may go on bringing more, and the caller has other things to do.
void Group::move(Nanoseconds now) {
    if (!formed()) return;
    constexpr int kMostRounds = 16;
    unfinished_ = true;
    for (int round = 0; unfinished_ && round < kMostRounds; ++round) {
        bool again = levels_->carry_out(now);
        fail_for(levels_->engine_failure(), now);
        if (levels_->planner().progress(now)) {
            again = true;
            moved_at_ = now;
        }
        if (levels_->move_messages()) again = true;
        unfinished_ = again;
    }
    look_after_late(now);
    // A level can fail by itself: the host's when a process dies.
    if (const int error = levels_->planner().error(); error != 0) fail(error, levels_->lost_here(), now);
    if (!joined_ && !ended_) check_formed(now);
}

void Group::on_complete(std::uint64_t cookie, int error, Nanoseconds) {
    if (cookie != kJoinCookie)
        port_.completed(cookie, error);
    else if (error == 0 && !ended_)
        on_joined();
}

void Group::close(Nanoseconds now) {
    closed_ = true;
    // The others wait for it, and its process lives.
    if (formed() && !joined_) fail(ECANCELED, kNoRank, now);
    if (formed()) {
        if (levels_->engine() != nullptr) levels_->engine()->close(now);
        move(now);
    }
    if (greeting() && !leads()) port_.remember_ended(ECANCELED);
    ended_ = true;
}

bool Group::done() const {
    if (!closed_) return false;
    const engine::Engine* const engine = formed() ? levels_->engine() : nullptr;
    if (engine == nullptr) return true;
    const engine::Phase phase = engine->phase();
    return phase == engine::Phase::left || (phase == engine::Phase::failed && engine->failure_told());
}

bool Group::busy() const {
    if (!formed()) return !ended_;
    if (unfinished_) return true;
    if (error_ != 0) return false;
    const engine::Engine* const engine = levels_->engine();
    if (engine != nullptr && engine->phase() == engine::Phase::left) return false;
    return (!joined_ && !ended_) || (closed_ && engine != nullptr) || open_operations() > 0;
}

Nanoseconds Group::next_deadline() const {
    if (!formed()) return ended_ ? kNever : join_.next_deadline();
    if (unfinished_) return Nanoseconds{};
    const Nanoseconds next = std::min({levels_->next_deadline(), stall_at(), late_.next_deadline()});
    return joined_ || ended_ ? next : std::min(next, plan_.deadline);
}

void Group::pump(Nanoseconds now) {
    touched_ = false;
    if (!formed()) {
        if (ended_) return;
        join_.on_timeout(now);
        return follow_join(now);
    }
    if (!joined_ && !ended_ && plan_.deadline <= now) fail(ETIMEDOUT, kNoRank, now);
    if (const int error = levels_->on_timeout(now); error != 0) fail(error, kNoRank, now);
    for (const auto& [rank, error] : losses_.take_found()) on_lost(rank, error, now);
    check_departed(now);
    move(now);
    // Others of this host may have ended the group while nothing was open here.
    fail_for(levels_->host_failure(), now);
    if (late_.next_deadline() <= now) ask_late(now);
    if (stall_at() <= now) fail(ETIMEDOUT, levels_->awaited(), now);
    levels_->tell_news();
}

}  // namespace mcastcoll::group
