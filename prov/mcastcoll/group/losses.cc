#include "group/losses.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace mcastcoll::group {
namespace {

// A member that is no neighbour of the dead leader informs this many of the leader's neighbours of each kind
// (host, host leaders, segment leaders), because a single receiver may be dead, too.
constexpr std::size_t kFewest = 2;
using Ranks = std::vector<std::uint32_t>;

// Adds the neighbours of one of these ranks: two on each side in a ring, and parent and children in a 4-ary
// tree. If any two ranks are missing, these neighbours still connect the others.
void add_beside(Ranks& to, levels::Ranks ranks, std::uint32_t rank) {
    constexpr std::size_t kArity = 4;
    const auto place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
    const std::size_t count = ranks.size();
    for (const std::size_t step : {std::size_t{1}, std::min<std::size_t>(2, count)}) {
        to.push_back(ranks[(place + step) % count]);
        to.push_back(ranks[(place + count - step) % count]);
    }
    if (place > 0) to.push_back(ranks[(place - 1) / kArity]);
    for (std::size_t child = kArity * place + 1; child <= kArity * (place + 1) && child < count; ++child)
        to.push_back(ranks[child]);
}

// The members next to a dead leader: its host, and its neighbours among the host leaders of the segment and
// among the segment leaders. Empty if the dead member led nothing.
class LeaderNeighbours {
  public:
    LeaderNeighbours(const levels::Placement& placement, std::uint32_t dead) : dead_(dead) {
        if (dead >= placement.members() || placement.host_leader(dead) != dead) return;
        Ranks leaders;
        for (std::uint32_t rank = 0; rank < placement.members(); ++rank) {
            const std::uint32_t leader = placement.host_leader(rank);
            if (leader == dead && rank != dead) host_.push_back(rank);
            if (leader == rank && placement.segment_of(rank) == placement.segment_of(dead))
                leaders.push_back(rank);
        }
        add_beside(leaders_, leaders, dead);
        if (has(placement.segments(), dead)) add_beside(segments_, placement.segments(), dead);
    }
    bool contains(std::uint32_t rank) const {
        return has(host_, rank) || has(leaders_, rank) || has(segments_, rank);
    }
    // The neighbours beyond this member's own levels: the host's memory and the engine already name lost
    // members.
    std::array<Ranks, 3> beyond_levels_of(const levels::Placement& placement) const {
        std::array<Ranks, 3> beyond{host_, leaders_, segments_};
        if (dead_ >= placement.members()) return beyond;
        const std::uint32_t self = placement.self();
        if (placement.host_of(self) == placement.host_of(dead_)) beyond[0].clear();
        if (placement.leads_host() && placement.segment_of(self) == placement.segment_of(dead_))
            beyond[1].clear();
        return beyond;
    }

  private:
    static bool has(levels::Ranks ranks, std::uint32_t rank) {
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    }

    const std::uint32_t dead_;
    Ranks host_, leaders_, segments_;
};

}  // namespace

std::vector<std::uint32_t> whom_to_inform(const levels::Placement& placement, Rank lost, bool joined) {
    const std::uint32_t self = placement.self();
    Ranks whom;
    if (joined) {
        if (placement.leads_segment()) add_beside(whom, placement.segments(), self);
        const LeaderNeighbours neighbours(placement, static_cast<std::uint32_t>(index_of(lost)));
        const std::size_t max = neighbours.contains(self) ? placement.members() : kFewest;
        for (const Ranks& ranks : neighbours.beyond_levels_of(placement))
            whom.insert(whom.end(), ranks.begin(), ranks.begin() + std::min(ranks.size(), max));
    } else {
        Ranks all(placement.members());
        std::iota(all.begin(), all.end(), 0U);
        add_beside(whom, all, self);
        whom.push_back(0);
    }
    std::sort(whom.begin(), whom.end());
    whom.erase(std::unique(whom.begin(), whom.end()), whom.end());
    std::erase_if(whom, [&](std::uint32_t rank) { return rank == self || rank_of(rank) == lost; });
    return whom;
}

}  // namespace mcastcoll::group
