// Who hears the multicast and who is heard: the election of the join, and those that follow when somebody
// finds that the last verdict is no longer true (README.md: The multicast, in mid-run).
// README.md, The join, has its steps: go, probes, votes, verdict.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

// One of them, until its votes are rank 0's to judge (ballots.h).
//
//     closed --begin()--> probing --everybody heard, or time is up--> voting --all below have voted--> closed
//
// Probes of the next may come before its go.
class Poll {
  public:
    Poll(const GroupConfig& config, const RankList& children, Rank parent);

    std::uint64_t number() const { return number_; }
    bool closed() const { return stage_ == Stage::closed; }
    bool probing() const { return stage_ == Stage::probing; }

    void begin(std::uint64_t number, Nanoseconds now);
    // next: whether the poll after this one may be meant.
    void on_probe(std::uint64_t number, Rank sender, bool next);
    // False: it is not one that this poll can count.
    bool on_vote(std::uint32_t child, std::uint64_t number, Bytes ballots, bool too_many);
    void on_timeout(Nanoseconds now);
    Nanoseconds next_deadline() const { return std::min(probe_at_, vote_at_); }
    // It is of no use any more; a probe that is due still goes out, for others.
    void stop() {
        stage_ = Stage::closed;
        probe_at_ = vote_at_ = kNever;
    }

    // The number of the probe that is due, from 1 on; 0: none. Then that it was sent, to everybody.
    std::uint32_t next_probe() const { return probes_due_ == 0 ? 0 : probes_sent_ + 1; }
    void probe_sent() {
        --probes_due_;
        ++probes_sent_;
        vote_when_all_heard();
    }
    // Somebody is to be told: a child of the poll, or the parent how this subtree votes.
    bool has_word() const { return vote_due_ || !untold_.over(); }
    // The child that is to be told that the poll is open; kNoRank: none.
    Rank next_go() { return untold_.next(); }
    // The votes of this member and those below are complete: for the parent, or, of rank 0, to be judged.
    bool take_vote() { return std::exchange(vote_due_, false); }
    bool take_result() { return std::exchange(result_due_, false); }
    const Ballots& ballots() const { return ballots_; }

  private:
    enum class Stage : std::uint8_t { closed, probing, voting };

    void listen(std::uint64_t number);
    void vote_when_all_heard();
    void vote();
    void check_votes();

    const GroupConfig& config_;
    const Rank parent_;
    const std::uint32_t voters_;   // children, bit i for child i
    const std::uint32_t speaker_;  // this member, or kNoSpeaker
    Stage stage_ = Stage::closed;
    std::uint64_t number_ = 0, heard_in_ = 0;  // the present or last one; the one that heard_ is about
    std::vector<bool> heard_;                  // by speaker
    Ballots ballots_;                          // of this member's subtree
    std::uint32_t missing_ = 0;                // voters that have not voted
    bool vote_due_ = false, result_due_ = false;
    Round untold_;  // of the poll
    std::uint32_t probes_due_ = 0, probes_sent_ = 0;
    Nanoseconds probe_at_ = kNever, vote_at_ = kNever;
};

// At most once per interval; the interval doubles with every use, and is short again after a long rest.
class Backoff {
  public:
    Backoff(Nanoseconds least, Nanoseconds most) : least_(least), most_(most), interval_(least) {}
    Nanoseconds allowed_at() const { return allowed_at_; }
    void use(Nanoseconds now) {
        if (allowed_at_ + Nanoseconds{8 * interval_.value} < now) interval_ = least_;
        allowed_at_ = now + interval_;
        interval_ = std::min(Nanoseconds{2 * interval_.value}, most_);
    }

  private:
    Nanoseconds least_, most_, interval_, allowed_at_{};
};

class Elections {
  public:
    explicit Elections(Core& core)
        : core_(core),
          poll_(core.config, core.children, core.parent),
          elections_(core.config.least_election_interval, core.config.most_election_interval),
          beacons_(core.config.least_beacon_interval, core.config.most_beacon_interval) {}

    // As rank 0: the election of the join.
    void begin_first();
    void on_go(const wire::Header& header);
    void on_probe(const wire::Header& header);
    void on_vote(const wire::Header& header, Bytes payload);
    void on_verdict(const wire::Header& header, Bytes payload);
    void on_request(const wire::Header& header);
    // What any fragment tells of the multicast.
    void on_fragment(const wire::Header& header);
    // A root begins an operation that it is not to multicast: it multicasts something that can be heard,
    // unless it did lately.
    void want_beacon();
    // After operations have finished: whether too many were silent.
    void settle() {
        if (core_.doubts.take_wanted()) doubt();
    }
    Nanoseconds next_deadline() const { return std::min(poll_.next_deadline(), elect_at_); }
    void on_timeout();
    bool next_multicast(Effect& effect) {
        return (beacon_due_ || poll_.next_probe() != 0) && make_multicast(effect);
    }
    bool next_message(Effect& effect) { return has_message() && make_message(effect); }

  private:
    bool has_message() const { return poll_.has_word() || core_.verdicts.untold() || request_due_; }
    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void begin(std::uint64_t number);
    void follow_poll();
    void decide(Verdict verdict);
    void take_first(Verdict verdict);
    void take_next(Verdict verdict, std::uint64_t from);
    void doubt() {
        if (poll_.closed()) request();
    }
    void request();
    void elect_again();
    void drop_requests(std::uint32_t patience);

    Core& core_;
    Poll poll_;
    bool requested_ = false, request_due_ = false, beacon_due_ = false;
    Nanoseconds elect_at_ = kNever;  // as rank 0
    Backoff elections_, beacons_;
    std::uint32_t probe_target_ = 0, beacon_target_ = 0;  // of the targets, where the next copy goes
};

}  // namespace mcastcoll::engine
