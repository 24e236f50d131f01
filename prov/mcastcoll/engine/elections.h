// Elections about the multicast: members test by probes which of them receive which, and rank 0 computes the
// reachability map (`ReachabilityMap`) from their votes. Election 0 is part of the join. Later elections
// follow when a member finds that the map is wrong.
//
// An outage of the multicast never stops an operation, because a receiver takes each fragment from any
// source. But an outage costs a useless multicast and a NAK per fragment. Elections during operation end this
// waste, and restore the multicast later.
//
// - Request: a member requests an election when eight operations in a row were silent (of all roots, or of
//   one root while others are received), or when it receives a packet that the map rules out. A mute root
//   multicasts a one-packet beacon when it begins an operation, at most once per millisecond at first and
//   once per second in the end; an idle group sends nothing.
// - Election: requests go up the gather tree, one per member and election. Rank 0 starts the next election
//   (`go`, probes, votes up the tree) 50 ms to 5 s after the last; the interval doubles, and is short again
//   after a long rest. Losses may cause a request, but the probes decide, by the rule of the join.
// - Suspected member: a request names the root whose silence or beacon was the reason, and `go` names one of
//   these. In a group above 256 members the named root probes beside the 16 regular speakers. So each of
//   several mute roots takes one election. A mute member that is no root is found in its turn to probe.
// - Map: only a changed map is distributed. The new map applies from operation watermark + slots on, which no
//   member can have begun. Every later watermark names the required map version, and a member without that
//   map keeps the watermark until the map arrives. Supplier, clients, report tree and multicasting of an
//   operation come from the supply graph for its operation number. Rank 0 distributes no further map before
//   the last one is in force, so two graphs are enough. Operations never wait for an election.
//
// Without rank 0's multicast the group has no multicast and no elections. Counters: election_requests_sent,
// elections, reachability_maps, and per member multicast_demotions and multicast_promotions. The provider
// logs every map at level info.
#pragma once

#include "engine/ballots.h"
#include "engine/core.h"

namespace mcastcoll::engine {

// One election at a time, until rank 0 has all votes (ballots.h):
//
//     closed --begin()--> probing --all probes received, or timeout--> voting --subtree has voted--> closed
//
// Probes of the next election may arrive before its `go`.
class Elections {
  public:
    explicit Elections(Core& core);

    // On rank 0: starts the election of the join.
    void begin_first();
    void on_go(const wire::Header& header);
    void on_probe(const wire::Header& header);
    void on_vote(const wire::Header& header, Bytes payload);
    void on_map(const wire::Header& header, Bytes payload);
    void on_request(const wire::Header& header);
    // Evaluates a fragment as evidence about the multicast.
    void on_fragment(const wire::Header& header);
    // On a root that is mute by the map, when it begins an operation: multicasts a beacon, unless the last
    // one is recent.
    void want_beacon();
    // Runs after operations have finished; requests an election if too many were silent.
    void settle() {
        if (const Rank root = core_.suspicion.take_wanted(); root != kNoRank)
            suspect(core_.graph().brought_by(root, core_.self()));
    }
    Nanoseconds next_deadline() const { return std::min({probe_at_, vote_at_, elect_at_}); }
    void on_timeout();
    bool next_multicast(Effect& effect) { return (beacon_due_ || probes_due_ > 0) && make_multicast(effect); }
    bool next_message(Effect& effect) {
        return (vote_due_ || !uninformed_.over() || core_.reachability.must_inform() || request_due_) &&
               make_message(effect);
    }

  private:
    // Permits one use per interval. The interval doubles with every use, and is short again after a rest of
    // eight intervals.
    class Backoff {
      public:
        Backoff(Nanoseconds min, Nanoseconds max) : min_(min), max_(max), interval_(min) {}
        Nanoseconds allowed_at() const { return allowed_at_; }
        void use(Nanoseconds now) {
            if (allowed_at_ + Nanoseconds{8 * interval_.value} < now) interval_ = min_;
            allowed_at_ = now + interval_;
            interval_ = std::min(Nanoseconds{2 * interval_.value}, max_);
        }

      private:
        Nanoseconds min_, max_, interval_, allowed_at_{};
    };

    enum class Stage : std::uint8_t { closed, probing, voting };

    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void begin(std::uint64_t number, Rank suspected);
    void listen(std::uint64_t number);
    void vote_when_all_received();
    void vote();
    void check_votes();
    void decide(ReachabilityMap map);
    void take_first(ReachabilityMap map);
    void take_next(ReachabilityMap map, std::uint64_t from);
    void suspect(Rank rank) {
        if (stage_ == Stage::closed) request(rank);
    }
    // A packet that a deaf member receives is evidence about that member, not about the sender.
    void suspect_if_unexpected(const SupplyGraph& graph, Rank sender) {
        if (!graph.can_receive(sender, core_.self())) suspect(graph.deaf(core_.self()) ? kNoRank : sender);
    }
    void request(Rank suspected);
    void elect_again();
    void drop_requests(std::uint32_t rest);

    Core& core_;
    Stage stage_ = Stage::closed;
    std::uint64_t number_ = 0, received_in_ = 0;  // current or last election; election described by received_
    std::vector<bool> received_;                  // by speaker: its probe was received; true for this member
    bool speaks_ = false;                         // this member probes in the current or last election
    Ballots ballots_;                             // of this member's subtree
    std::uint32_t missing_ = 0;                   // children that have not voted, bit i for child i
    bool vote_due_ = false;
    Round uninformed_;  // children that need the `go`
    std::uint32_t probes_due_ = 0, probes_sent_ = 0;
    Nanoseconds probe_at_ = kNever, vote_at_ = kNever, elect_at_ = kNever;  // elect_at_: on rank 0 only
    bool requested_ = false, request_due_ = false, beacon_due_ = false;
    Rank suspected_ = kNoRank;  // suspected member named by the request
    Backoff elections_, beacons_;
    std::uint32_t probe_target_ = 0, beacon_target_ = 0;  // next address for the probe or beacon
};

}  // namespace mcastcoll::engine
