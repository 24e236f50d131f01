// Members that a group has lost: who they are, how this member knows, and whom it tells when the group ends
// for it.
#pragma once

#include <cstdint>
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

    // The process of this member is gone, or cannot be reached any more. The first reason counts.
    void add(Rank rank, int error, const std::string& reason) {
        found_.push_back({rank, error});
        reasons_.emplace(rank, reason);
    }
    // Those that came since the last call.
    std::vector<Loss> take_found() { return std::exchange(found_, {}); }
    const std::string* reason(Rank rank) const {
        const auto found = reasons_.find(rank);
        return found == reasons_.end() ? nullptr : &found->second;
    }

    // Gone without having been needed for anything open, as whoever has done its share may be: an error as
    // soon as it is needed.
    void let_go(const Loss& loss) { gone_.push_back(loss); }
    // One of those that this holds for; kNoRank: none.
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

// The ranks that a member tells when its group has ended because of this one (kNoRank: of nobody). Members of
// a host hear it from the memory that they share, leaders of hosts from their engine, and leaders of segments
// tell each other. A dead leader can tell nobody, so every member that knows of it speaks for it: to its
// members, and, without an engine of its own, to the leaders that it would have told. While the group forms a
// member's levels may be missing: it tells the leaders of its host and of its segment, too.
std::vector<std::uint32_t> whom_to_tell(const levels::Placement& placement, Rank lost, bool joined);

}  // namespace mcastcoll::group
