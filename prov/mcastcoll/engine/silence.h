// What a member notices about the multicast while operations run, and how often it may be asked about.
//
// Nobody is believed dead for one silent operation: only a run of them is a reason to doubt, and a doubt is
// only a reason to hold an election (doubts.h), which measures. So a burst of losses changes nothing, and
// what is demoted or promoted is decided by the rule of the join.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.h"

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

}  // namespace mcastcoll::engine
