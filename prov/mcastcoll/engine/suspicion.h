// Detects that the reachability map may be wrong (elections.h). Suspicion alone does not change the map: an
// election decides by the rule of the join, so a burst of losses does no lasting harm.
#pragma once

#include <array>
#include <utility>

#include "base/types.h"

namespace mcastcoll::engine {

// After this many successive operations without any multicast fragment, a member requests an election, and
// sends NAKs for later operations of these roots at once.
inline constexpr std::uint32_t kSilentEnough = 8;

// Counts successive silent operations, of all roots together and of single roots.
class Suspicion {
  public:
    void received(Rank root) {
        all_ = 0;
        if (Run& run = runs_[place(root)]; run.root == root) run.missed = 0;
    }
    // An operation has ended without a multicast fragment.
    void missed(Rank root) {
        if (all_ < kSilentEnough) ++all_;
        Run& run = runs_[place(root)];
        if (run.root != root) run = {root, 0};
        if (run.missed < kSilentEnough) ++run.missed;
        if (resting_ > 0)
            --resting_;
        else
            wanted_ = silent(root) ? root : wanted_;
    }
    // True if this member requests the data of this root's operations at once, without waiting for the
    // multicast.
    bool silent(Rank root) const {
        const Run& run = runs_[place(root)];
        return all_ >= kSilentEnough || (run.root == root && run.missed >= kSilentEnough);
    }
    // Returns, once, the root whose silence is a reason for an election request, or kNoRank.
    Rank take_wanted() { return std::exchange(wanted_, kNoRank); }
    // Makes silence a reason again only after this many more silent operations.
    void rest(std::uint32_t operations) { resting_ = operations; }

  private:
    struct Run {
        Rank root = kNoRank;
        std::uint32_t missed = 0;
    };
    // Roots that share an entry replace each other. The count then starts again, which only delays a request.
    static std::size_t place(Rank root) { return index_of(root) % kRuns; }

    static constexpr std::size_t kRuns = 16;
    std::array<Run, kRuns> runs_{};
    std::uint32_t all_ = 0, resting_ = 0;
    Rank wanted_ = kNoRank;
};

}  // namespace mcastcoll::engine
