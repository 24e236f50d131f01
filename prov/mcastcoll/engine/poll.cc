#include "engine/poll.h"

#include <algorithm>

namespace mcastcoll::engine {

Poll::Poll(const GroupConfig& config, const RankList& children, Rank parent)
    : config_(config),
      children_(children),
      parent_(parent),
      speaker_(speaker_of(config.self, config.members)),
      heard_(speaker_count(config.members)),
      ballots_(config.members, tree_size(config.self, config.tree_arity, config.members),
               config.message_bytes - wire::kHeaderBytes) {}

void Poll::listen(std::uint64_t number) {
    if (heard_in_ != number) std::fill(heard_.begin(), heard_.end(), false);
    heard_in_ = number;
}

void Poll::begin(std::uint64_t number, Nanoseconds now) {
    number_ = number;
    listen(number);
    stage_ = Stage::probing;
    ballots_.clear();
    voted_.fill(false);
    missing_ = children_.count;
    begun_ = true;
    told_ = 0;
    probes_due_ = probes_sent_ = 0;
    if (!config_.multicast) return vote();
    vote_at_ = now + config_.probe_settle;
    if (speaker_ == kNoSpeaker) return vote_when_all_heard();
    probes_due_ = 1;
    if (config_.probes > 1) probe_at_ = now + config_.probe_interval;
}

void Poll::on_probe(std::uint64_t number, Rank sender, bool next) {
    if (next && closed() && number == number_ + 1) listen(number);
    const std::uint32_t speaker = speaker_of(sender, config_.members);
    if (speaker == kNoSpeaker || number != heard_in_) return;
    heard_[speaker] = true;
    vote_when_all_heard();
}

void Poll::on_timeout(Nanoseconds now) {
    if (probe_at_ <= now) {
        ++probes_due_;
        probe_at_ = probes_sent_ + probes_due_ < config_.probes ? now + config_.probe_interval : kNever;
    }
    if (vote_at_ <= now) vote();
}

// There is nothing more to learn once everybody has been heard and has had the chance to hear us.
void Poll::vote_when_all_heard() {
    if (!probing()) return;
    if (speaker_ != kNoSpeaker && probes_sent_ < config_.probes) return;
    for (std::uint32_t i = 0; i < heard_.size(); ++i)
        if (!heard_[i] && i != speaker_) return;
    vote();
}

void Poll::vote() {
    if (!probing()) return;
    stage_ = Stage::voting;
    probe_at_ = vote_at_ = kNever;
    if (speaker_ != kNoSpeaker) heard_[speaker_] = true;
    ballots_.cast(config_.self, heard_, config_.multicast);
    check_votes();
}

bool Poll::on_vote(std::uint32_t child, std::uint64_t number, Bytes ballots, bool too_many) {
    if (closed() || number != number_ || voted_[child] || !ballots_.merge(ballots, too_many)) return false;
    voted_[child] = true;
    --missing_;
    check_votes();
    return true;
}

void Poll::check_votes() {
    if (stage_ != Stage::voting || missing_ > 0) return;
    stage_ = Stage::closed;
    (parent_ == kNoRank ? result_due_ : vote_due_) = true;
}

}  // namespace mcastcoll::engine
