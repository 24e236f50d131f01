// The join, up and down the gather tree. A member whose subtree listens tells its parent (ready); rank 0 then
// opens the first election about the multicast (lane.cc), whose verdict is the end of the join. Who is deaf
// or mute is served point-to-point; the group works either way.
#include <algorithm>

#include "engine/engine.h"

namespace mcastcoll::engine {
namespace {

constexpr std::uint32_t kMostPings = 16;  // should all of them take long

}  // namespace

void Engine::start(Nanoseconds now) {
    now_ = now;
    if (config_.members == 1) {
        phase_ = Phase::active;
        notice_joined_ = true;
        begin_pending(now);
        return;
    }
    watch_at_ = now + config_.watch_delay;
    started_ = true;
    check_ready(now);
}

// The position of a rank among this member's children in the gather tree; kMaxArity when it is none of them.
std::uint32_t Engine::child_index(Rank rank) const {
    const Rank* found = std::find(tree_children_.begin(), tree_children_.end(), rank);
    return found == tree_children_.end() ? kMaxArity
                                         : static_cast<std::uint32_t>(found - tree_children_.begin());
}

void Engine::on_ready(const wire::Header& header, Nanoseconds now) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    if (child_ready_[child]) return;  // it says so until it is told to go
    child_ready_[child] = true;
    ++ready_count_;
    check_ready(now);
}

// Children may be ready before this member is.
void Engine::check_ready(Nanoseconds now) {
    if (!started_ || ready_count_ < tree_children_.count) return;
    if (tree_parent_ != kNoRank)
        say_ready(now);
    else if (!config_.multicast)
        take_first_verdict({}, now);  // nobody can be the judge of a lane its leader does not have
    else
        begin_election(0, now);
}

// Again and again: a parent that has not begun its join yet does not know the group.
void Engine::say_ready(Nanoseconds now) {
    ready_due_ = true;
    ready_at_ = now + ready_interval_;
    ready_interval_ = std::min(Nanoseconds{2 * ready_interval_.value}, kMostReadyInterval);
}

bool Engine::next_admission_message(Effect& effect) {
    const OperationId none{};
    if (ready_due_) {
        ready_due_ = false;
        make_message(effect, wire::Kind::ready, tree_parent_, none, 0, 0, {});
        return true;
    }
    if (ping_due_) {
        ping_due_ = false;
        const auto before = rank_of((index_of(config_.self) + config_.members - 1) % config_.members);
        make_message(effect, wire::Kind::ping, before, none, 0, static_cast<std::uint64_t>(now_.value), {});
        return true;
    }
    if (!pongs_.empty()) {
        const wire::Header question = pongs_.front();
        pongs_.pop();
        make_message(effect, wire::Kind::pong, question.sender, none, 0, question.total, {});
        return true;
    }
    return false;
}

// Whoever has joined may sleep, or compute, before it reads its queues again, and a pong that took seconds
// for that would make every deadline seconds long for the life of the group. So what is longer than silence
// may last is measured again, when both are awake very likely, and the shortest counts.
void Engine::on_pong(const wire::Header& header, Nanoseconds now) {
    const Nanoseconds took = now - Nanoseconds{static_cast<std::int64_t>(header.total)};
    shortest_pong_ = std::min(shortest_pong_, std::max(took, Nanoseconds{}));
    if (shortest_pong_ > config_.most_silence && ++long_pongs_ < kMostPings) {
        ping_due_ = true;
        return;
    }
    round_trip_.sample(shortest_pong_);
    shortest_pong_ = kNever;
    long_pongs_ = 0;
}

}  // namespace mcastcoll::engine
