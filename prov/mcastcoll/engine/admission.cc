// The join, up and down the gather tree. A member whose subtree listens tells its parent (ready); rank 0 then
// opens the first election about the multicast (elections.cc), whose verdict is the end of the join. Who is
// deaf or mute is served point-to-point; the group works either way.
#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::start(Nanoseconds now) {
    now_ = now;
    if (config_.members == 1) {
        phase_ = Phase::active;
        notices_.joined();
        begin_pending(now);
        return;
    }
    watch_at_ = now + config_.watch_delay;
    readiness_.start();
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
    if (readiness_.on_child(child)) check_ready(now);
}

void Engine::check_ready(Nanoseconds now) {
    if (!readiness_.complete()) return;
    if (tree_parent_ != kNoRank)
        readiness_.tell(now);
    else if (!config_.multicast)
        take_first_verdict({}, now);  // nobody can be the judge of a multicast that its leader does not have
    else
        begin_election(0, now);
}

// Round trips are measured to this one.
Rank Engine::member_before() const {
    return rank_of((index_of(config_.self) + config_.members - 1) % config_.members);
}

bool Engine::next_admission_message(Effect& effect) {
    const OperationId none{};
    if (readiness_.take_due()) {
        make_message(effect, wire::Kind::ready, tree_parent_, none, 0, 0, {});
        return true;
    }
    if (ping_due_) {
        ping_due_ = false;
        round_trip_.on_ping(now_);
        make_message(effect, wire::Kind::ping, member_before(), none, 0,
                     static_cast<std::uint64_t>(now_.value), {});
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

// Only the answer to the ping that is open counts, from the member that was asked.
void Engine::on_pong(const wire::Header& header, Nanoseconds now) {
    const Nanoseconds pinged_at{static_cast<std::int64_t>(header.total)};
    if (header.sender != member_before() || !round_trip_.on_pong(pinged_at, now)) {
        ++counters_.unexpected_kind;
        return;
    }
    ping_due_ = round_trip_.overslept();
}

}  // namespace mcastcoll::engine
