// Whether this member still believes in the verdict about the multicast (README.md: The multicast, in
// mid-run). A burst of losses changes nothing: an election decides, by the rule of the join.
#pragma once

#include <array>
#include <utility>

#include "base/types.h"

namespace mcastcoll::engine {

// So many operations in a row that were multicast and of which nothing was heard are a reason to doubt; their
// receivers ask at once from then on.
inline constexpr std::uint32_t kSilentEnough = 8;

// Runs of silence, of everybody and of single roots.
class Doubts {
  public:
    void heard(Rank root) {
        all_ = 0;
        if (Run& run = runs_[place(root)]; run.root == root) run.missed = 0;
    }
    // An operation is over of which nothing was heard.
    void missed(Rank root) {
        if (all_ < kSilentEnough) ++all_;
        Run& run = runs_[place(root)];
        if (run.root != root) run = {root, 0};
        if (run.missed < kSilentEnough) ++run.missed;
        if (patience_ > 0)
            --patience_;
        else
            wanted_ = silent(root) ? root : wanted_;
    }
    // So often that its operations are asked for at once.
    bool silent(Rank root) const {
        const Run& run = runs_[place(root)];
        return all_ >= kSilentEnough || (run.root == root && run.missed >= kSilentEnough);
    }
    // A root whose silence is a reason to ask for an election, or kNoRank; not before so many more were
    // missed.
    Rank take_wanted() { return std::exchange(wanted_, kNoRank); }
    void rest(std::uint32_t operations) { patience_ = operations; }

  private:
    struct Run {
        Rank root = kNoRank;
        std::uint32_t missed = 0;
    };
    // Roots that share an entry push each other out; their run begins anew, which only costs time.
    static std::size_t place(Rank root) { return index_of(root) % kRuns; }

    static constexpr std::size_t kRuns = 16;
    std::array<Run, kRuns> runs_{};
    std::uint32_t all_ = 0, patience_ = 0;
    Rank wanted_ = kNoRank;
};

}  // namespace mcastcoll::engine
