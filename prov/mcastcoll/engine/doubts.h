// Whether this member still believes in the verdict about the multicast, and what it does when it does not
// (README.md: The multicast, in mid-run). A burst of losses changes nothing: the rule of the join decides.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "engine/config.h"

namespace mcastcoll::engine {

// So many operations in a row that were multicast and of which nothing was heard are a reason to doubt; their
// receivers ask at once from then on.
inline constexpr std::uint32_t kSilentEnough = 8;

// Runs of silence, of everybody and of single roots.
class Silence {
  public:
    void missed(Rank root) {
        if (all_ < kSilentEnough) ++all_;
        Run& run = run_of(root);
        if (run.root != root) run = {root, 0};
        if (run.missed < kSilentEnough) ++run.missed;
    }
    void heard(Rank root) {
        all_ = 0;
        if (Run& run = run_of(root); run.root == root) run.missed = 0;
    }
    bool of(Rank root) const {
        const Run& run = runs_[index_of(root) % runs_.size()];
        return all_ >= kSilentEnough || (run.root == root && run.missed >= kSilentEnough);
    }

  private:
    struct Run {
        Rank root = kNoRank;
        std::uint32_t missed = 0;
    };
    // Roots that share an entry push each other out; their run begins anew, which only costs time.
    Run& run_of(Rank root) { return runs_[index_of(root) % runs_.size()]; }

    std::uint32_t all_ = 0;
    std::array<Run, 16> runs_{};
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

class Doubts {
  public:
    // judges: as rank 0, who holds the elections.
    Doubts(const GroupConfig& config, bool judges)
        : judges_(judges),
          multicast_(config.multicast),
          elections_(config.least_election_interval, config.most_election_interval),
          beacons_(config.least_beacon_interval, config.most_beacon_interval) {}

    void heard(Rank root) { silence_.heard(root); }
    // So often that its operations are asked for at once.
    bool silent(Rank root) const { return silence_.of(root); }
    // An operation is over of which nothing was heard. True: that is a reason to ask.
    bool missed(Rank root) {
        silence_.missed(root);
        if (patience_ > 0) return --patience_, false;
        return silent(root);
    }

    bool requested() const { return requested_; }
    void request(Nanoseconds now) {
        requested_ = true;
        if (!judges_)
            request_due_ = true;
        else if (multicast_)
            elect_again(now);
    }
    // A child's, while an election is held: it waits for the end of that.
    void keep_request() {
        requested_ = true;
        request_due_ = !judges_;
    }
    // The parent is to be told.
    bool request_due() const { return request_due_; }
    bool take_request() { return std::exchange(request_due_, false); }

    // Multicasts something that can be heard, unless that was done lately.
    void want_beacon(Nanoseconds now) {
        if (now < beacons_.allowed_at()) return;
        beacons_.use(now);
        beacon_due_ = true;
    }
    bool beacon_due() const { return beacon_due_; }
    void beacon_sent() { beacon_due_ = false; }

    // Election number 0 is the join's.
    void on_election(std::uint64_t number, Nanoseconds now) {
        elect_at_ = kNever;
        if (number > 0) elections_.use(now);
        requested_ = request_due_ = false;
        patience_ = kSilentEnough;
    }
    // It ended in another verdict, or, of rank 0, in the same.
    void on_verdict() {
        requested_ = request_due_ = false;
        patience_ = 0;
    }
    void on_same_verdict(Nanoseconds now) {
        if (requested_) elect_again(now);
    }

    // When rank 0 holds the next election.
    Nanoseconds elect_at() const { return elect_at_; }

  private:
    void elect_again(Nanoseconds now) { elect_at_ = std::max(now, elections_.allowed_at()); }

    const bool judges_, multicast_;
    Silence silence_;
    bool requested_ = false, request_due_ = false, beacon_due_ = false;
    std::uint32_t patience_ = 0;  // silent operations that are no reason to ask yet
    Nanoseconds elect_at_ = kNever;
    Backoff elections_, beacons_;
};

}  // namespace mcastcoll::engine
