// The members that one member of a group has lost, and the members to inform of a loss.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "levels/placement.h"

namespace mcastcoll::group {

class Losses {
  public:
    struct Loss {
        Rank rank = kNoRank;
        int error = 0;
    };

    // The process of this member is gone or unreachable. The first reason counts.
    void add(Rank rank, int error, const std::string& reason) {
        found_.push_back({rank, error});
        reasons_.emplace(rank, reason);
    }
    // The losses since the last call.
    std::vector<Loss> take_found() { return std::exchange(found_, {}); }
    const std::string* reason(Rank rank) const {
        const auto found = reasons_.find(rank);
        return found == reasons_.end() ? nullptr : &found->second;
    }

    // Records a lost member that no open operation needed, such as a member that has finished its part and
    // exited. The loss becomes an error as soon as an operation needs the member.
    void let_go(const Loss& loss) { gone_.push_back(loss); }
    // Returns a recorded loss for which needs(rank) holds, or a loss with kNoRank.
    template <typename Needed>
    Loss needed(Needed&& needs) const {
        for (const Loss& loss : gone_)
            if (needs(static_cast<std::uint32_t>(index_of(loss.rank)))) return loss;
        return {};
    }

  private:
    std::vector<Loss> found_, gone_;
    std::map<Rank, std::string> reasons_;
};

// The ranks that a member informs when its group ends because of the lost rank (kNoRank: unknown). The
// processes of a host learn of the end from shared memory, host leaders from the engine, and segment leaders
// inform their neighbours. A dead leader forwards no news: its neighbours inform each other, and the
// remaining informed members send the news to a few of these neighbours. While the group forms a member's
// levels may be missing: each member then informs rank 0, and its neighbours in a ring and a tree over all
// members.
std::vector<std::uint32_t> whom_to_inform(const levels::Placement& placement, Rank lost, bool joined);

// The maximum number of lost ranks, kNoRank included, for which one member informs others: the news may
// arrive first without the lost rank, or for two ranks.
constexpr std::size_t kMaxDeathsSent = 3;

}  // namespace mcastcoll::group
