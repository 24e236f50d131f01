// A poll about the multicast: who hears whom. Its end is rank 0's to judge (ballots.h).
//
//     closed --begin()--> probing --everybody heard, or time is up--> voting --all below have voted--> closed
//
// Rank 0 opens it, and everybody passes that on (go) down the tree of messages. Speakers multicast a few
// probes, all note whom they hear, and the votes are gathered up the tree. One poll follows the other; probes
// of the next may come before its go.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/ballots.h"
#include "engine/config.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

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
    bool has_word() const { return vote_due_ || (begun_ && told_ < children_.count); }
    // The child that is to be told that the poll is open; kNoRank: none.
    Rank next_go() { return begun_ && told_ < children_.count ? children_.ranks[told_++] : kNoRank; }
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
    const RankList children_;
    const Rank parent_;
    const std::uint32_t speaker_;  // this member, or kNoSpeaker
    Stage stage_ = Stage::closed;
    std::uint64_t number_ = 0, heard_in_ = 0;  // the present or last one; the one that heard_ is about
    std::vector<bool> heard_;                  // by speaker
    Ballots ballots_;                          // of this member's subtree
    std::uint32_t missing_ = 0;                // children that have not voted
    std::array<bool, kMaxArity> voted_{};      // by child
    bool begun_ = false, vote_due_ = false, result_due_ = false;
    std::uint32_t told_ = 0;  // children that know of the poll
    std::uint32_t probes_due_ = 0, probes_sent_ = 0;
    Nanoseconds probe_at_ = kNever, vote_at_ = kNever;
};

}  // namespace mcastcoll::engine
