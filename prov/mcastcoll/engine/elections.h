// Who hears the multicast and who is heard: the election of the join, and those that follow when somebody
// finds that the last verdict is no longer true (README.md: The join; The multicast, in mid-run).
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

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

// One poll at a time, until its votes are rank 0's to judge (ballots.h):
//
//     closed --begin()--> probing --everybody heard, or time is up--> voting --all below have voted--> closed
//
// Probes of the next may come before its go.
class Elections {
  public:
    explicit Elections(Core& core);

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
        if (const Rank root = core_.doubts.take_wanted(); root != kNoRank)
            doubt(core_.graph().brought_by(root, core_.self()));
    }
    Nanoseconds next_deadline() const { return std::min({probe_at_, vote_at_, elect_at_}); }
    void on_timeout();
    bool next_multicast(Effect& effect) { return (beacon_due_ || probes_due_ > 0) && make_multicast(effect); }
    bool next_message(Effect& effect) {
        return (vote_due_ || !untold_.over() || core_.verdicts.untold() || request_due_) &&
               make_message(effect);
    }

  private:
    enum class Stage : std::uint8_t { closed, probing, voting };

    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void begin(std::uint64_t number, Rank doubted);
    void listen(std::uint64_t number);
    void vote_when_all_heard();
    void vote();
    void check_votes();
    void decide(Verdict verdict);
    void take_first(Verdict verdict);
    void take_next(Verdict verdict, std::uint64_t from);
    void doubt(Rank rank) {
        if (stage_ == Stage::closed) request(rank);
    }
    // What the deaf hear says nothing about the sender.
    void doubt_if_unexpected(const SupplyGraph& graph, Rank sender) {
        if (!graph.can_hear(sender, core_.self())) doubt(graph.deaf(core_.self()) ? kNoRank : sender);
    }
    void request(Rank doubted);
    void elect_again();
    void drop_requests(std::uint32_t patience);

    Core& core_;
    Stage stage_ = Stage::closed;
    std::uint64_t number_ = 0, heard_in_ = 0;  // the present or last poll; the one that heard_ is about
    std::vector<bool> heard_;                  // by speaker, this member among them
    bool speaks_ = false;                      // in the present or last poll
    Ballots ballots_;                          // of this member's subtree
    std::uint32_t missing_ = 0;                // children that have not voted, bit i for child i
    bool vote_due_ = false;
    Round untold_;  // of the poll
    std::uint32_t probes_due_ = 0, probes_sent_ = 0;
    Nanoseconds probe_at_ = kNever, vote_at_ = kNever, elect_at_ = kNever;  // the last as rank 0
    bool requested_ = false, request_due_ = false, beacon_due_ = false;
    Rank doubted_ = kNoRank;  // by the request
    Backoff elections_, beacons_;
    std::uint32_t probe_target_ = 0, beacon_target_ = 0;  // of the targets, where the next copy goes
};

}  // namespace mcastcoll::engine
