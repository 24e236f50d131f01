// The join's probe and vote. Rank 0 leads: it waits until everybody listens (ready), tells everybody to begin
// (go), every member multicasts a few probes and notes whom it hears, tells the leader (vote), and the leader
// tells everybody who is deaf and who is mute (verdict). Who is deaf or mute is served point-to-point; the
// group works either way.
#include <cassert>

#include "engine/engine.h"

namespace mcastcoll::engine {
namespace {

bool bit(Bytes bytes, std::size_t offset, std::size_t index) {
    return std::to_integer<unsigned>(bytes[offset + index / 8]) >> (index % 8) & 1;
}

void set_bit(std::vector<std::byte>& bytes, std::size_t offset, std::size_t index) {
    bytes[offset + index / 8] |= static_cast<std::byte>(1U << (index % 8));
}

// A speaker is mute when fewer than half of those who hear anything heard it; a member is deaf when it heard
// fewer than half of the others that are not mute.
void judge(const std::vector<std::vector<bool>>& heard, std::vector<bool>& deaf, std::vector<bool>& mute) {
    const std::size_t members = heard.size();
    std::vector<bool> listens(members);
    for (std::size_t i = 0; i < members; ++i)
        for (std::size_t j = 0; j < members; ++j)
            if (heard[i][j]) listens[i] = true;
    for (std::size_t j = 0; j < members; ++j) {
        std::size_t listeners = 0, hearers = 0;
        for (std::size_t i = 0; i < members; ++i) {
            if (i == j || !listens[i]) continue;
            ++listeners;
            hearers += heard[i][j];
        }
        mute[j] = hearers == 0 || 2 * hearers < listeners;
    }
    for (std::size_t i = 0; i < members; ++i) {
        std::size_t speakers = 0, understood = 0;
        for (std::size_t j = 0; j < members; ++j) {
            if (i == j || mute[j]) continue;
            ++speakers;
            understood += heard[i][j];
        }
        // Without another speaker there is nothing to be deaf to: the only speaker itself counts as hearing.
        deaf[i] = speakers == 0 ? mute[i] : 2 * understood < speakers;
    }
}

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
    is_ready_[index_of(config_.self)] = true;
    ready_due_ = config_.self != rank_of(0);
}

void Engine::on_ready(const wire::Header& header, Nanoseconds now) {
    if (config_.self != rank_of(0) || is_ready_[index_of(header.sender)]) return;
    is_ready_[index_of(header.sender)] = true;
    if (++ready_count_ < config_.members - 1) return;
    if (!config_.multicast) return decide(now);  // nobody can be the judge of a lane its leader does not have
    go_ = true;
    go_next_ = 1;
    begin_probing(now);
}

void Engine::begin_probing(Nanoseconds now) {
    if (phase_ != Phase::forming) return;
    phase_ = Phase::probing;
    ping_due_ = true;
    if (!config_.multicast) return cast_vote(now);
    probes_due_ = 1;
    if (config_.probes > 1) probe_at_ = now + config_.probe_interval;
    vote_at_ = now + config_.probe_settle;
}

void Engine::on_probe(Rank sender, Nanoseconds now) {
    ++counters_.probes_received;
    if (phase_ != Phase::forming && phase_ != Phase::probing) return;
    heard_[index_of(sender)] = true;
    vote_when_all_heard(now);
}

// There is nothing more to learn once everybody has been heard and has had the chance to hear us.
void Engine::vote_when_all_heard(Nanoseconds now) {
    if (phase_ != Phase::probing || probes_sent_ < config_.probes) return;
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < heard_.size(); ++i) count += heard_[i] && rank_of(i) != config_.self;
    if (count == config_.members - 1) cast_vote(now);
}

void Engine::cast_vote(Nanoseconds now) {
    if (phase_ != Phase::probing) return;
    phase_ = Phase::voting;
    vote_at_ = kNever;
    for (std::size_t i = 0; i < heard_.size(); ++i)
        if (heard_[i] && rank_of(i) != config_.self) set_bit(vote_bytes_, 0, i);
    if (config_.self != rank_of(0)) {
        vote_due_ = true;
        return;
    }
    wire::Header own{.sender = config_.self};
    on_vote(own, vote_bytes_, now);
}

void Engine::on_vote(const wire::Header& header, Bytes payload, Nanoseconds now) {
    const std::size_t voter = index_of(header.sender);
    if (config_.self != rank_of(0) || verdict_known_ || has_voted_[voter] ||
        payload.size() != vote_bytes_.size()) {
        ++counters_.unexpected_kind;
        return;
    }
    has_voted_[voter] = true;
    for (std::size_t i = 0; i < config_.members; ++i) votes_[voter][i] = bit(payload, 0, i);
    if (++vote_count_ == config_.members) decide(now);
}

void Engine::decide(Nanoseconds now) {
    std::vector<bool> deaf(config_.members, true), mute(config_.members, true);
    if (config_.multicast) judge(votes_, deaf, mute);
    for (std::size_t i = 0; i < config_.members; ++i) {
        if (deaf[i]) set_bit(verdict_bytes_, 0, i);
        if (mute[i]) set_bit(verdict_bytes_, vote_bytes_.size(), i);
    }
    verdict_next_ = 1;
    on_verdict(verdict_bytes_, now);
}

void Engine::on_verdict(Bytes payload, Nanoseconds now) {
    if (verdict_known_ || payload.size() != verdict_bytes_.size()) {
        ++counters_.unexpected_kind;
        return;
    }
    std::vector<bool> deaf(config_.members), mute(config_.members);
    for (std::size_t i = 0; i < config_.members; ++i) {
        deaf[i] = bit(payload, 0, i);
        mute[i] = bit(payload, vote_bytes_.size(), i);
    }
    graph_.set_verdict(deaf, mute);
    verdict_known_ = true;
    phase_ = Phase::active;
    probe_at_ = vote_at_ = kNever;
    notice_joined_ = true;
    begin_pending(now);
}

bool Engine::next_admission_message(Effect& effect) {
    const OperationId none{};
    if (ready_due_) {
        ready_due_ = false;
        make_message(effect, wire::Kind::ready, rank_of(0), none, 0, 0, {});
        return true;
    }
    if (go_ && go_next_ < config_.members) {
        make_message(effect, wire::Kind::go, rank_of(go_next_++), none, 0, 0, {});
        return true;
    }
    if (ping_due_) {
        ping_due_ = false;
        const auto before = rank_of((index_of(config_.self) + config_.members - 1) % config_.members);
        make_message(effect, wire::Kind::ping, before, none, 0, static_cast<std::uint64_t>(now_.value), {});
        return true;
    }
    if (vote_due_) {
        vote_due_ = false;
        make_message(effect, wire::Kind::vote, rank_of(0), none, 0, 0, vote_bytes_);
        return true;
    }
    if (verdict_known_ && verdict_next_ > 0 && verdict_next_ < config_.members) {
        make_message(effect, wire::Kind::verdict, rank_of(verdict_next_++), none, 0, 0, verdict_bytes_);
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

}  // namespace mcastcoll::engine
