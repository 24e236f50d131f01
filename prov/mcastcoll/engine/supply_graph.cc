#include "engine/supply_graph.h"

#include <cassert>

namespace mcastcoll::engine {
namespace {

// Position in ring order after the root, which has position 0.
std::uint32_t position(const RankSet& set, Rank root, Rank rank) {
    if (rank == root) return 0;
    assert(set.contains(rank));
    const std::uint32_t first = set.below(root) + (set.contains(root) ? 1U : 0U);
    const std::uint32_t below = set.below(rank);
    return (below >= first ? below - first : below + set.size() - first) + 1;
}

Rank at_position(const RankSet& set, Rank root, std::uint32_t position) {
    if (position == 0) return root;
    const std::uint32_t first = set.below(root) + (set.contains(root) ? 1U : 0U);
    const std::uint32_t at = first + position - 1, size = set.size();
    return set.at(at < size ? at : at - size);
}

// The rank's parent in a heap of this arity over the positions; arity 1 gives the ring.
Rank parent_in(const RankSet& set, Rank root, Rank rank, std::uint32_t arity) {
    return at_position(set, root, (position(set, root, rank) - 1) / arity);
}

// The rank's children in the same heap.
RankList children_in(const RankSet& set, Rank root, Rank rank, std::uint32_t arity) {
    assert(arity >= 1 && arity <= kMaxArity);
    RankList children;
    const std::uint32_t last = set.size() - (set.contains(root) ? 1U : 0U);  // without the root
    for (std::uint64_t child = std::uint64_t{position(set, root, rank)} * arity + 1;
         child <= last && children.count < arity; ++child)
        children.add(at_position(set, root, static_cast<std::uint32_t>(child)));
    return children;
}

}  // namespace

void SupplyGraph::set_map(ReachabilityMap map) {
    map_ = std::move(map);
    leaders_.clear();
    supplied_.clear();
    healthy_ = map_.works && map_.deaf.empty() && map_.mute.empty() && range_of_.empty() && members_ > 1;
    if (range_of_.empty() || !map_.works) return;
    // The first member of a range that receives and is received is its leader.
    leaders_.assign(1U + *std::max_element(range_of_.begin(), range_of_.end()), kNoRank);
    std::vector<bool> needs_leader(leaders_.size());
    const RankSet mute = RankSet::of(map_.mute, members_);
    for (std::uint32_t i = 0; i < members_; ++i) {
        const Rank rank = rank_of(i);
        if (deaf(rank)) continue;
        needs_leader[range_of_[i]] = true;
        if (leaders_[range_of_[i]] == kNoRank && !mute.contains(rank)) leaders_[range_of_[i]] = rank;
    }
    for (std::size_t range = 0; range < leaders_.size(); ++range)
        if (needs_leader[range] && leaders_[range] == kNoRank) return;
    supplied_.assign(leaders_.size(), map_.deaf);
    for (std::size_t range = 0; range < leaders_.size(); ++range) {
        for (std::size_t other = 0; other < leaders_.size(); ++other)
            if (other != range && leaders_[other] != kNoRank) supplied_[range].push_back(leaders_[other]);
        std::sort(supplied_[range].begin(), supplied_[range].end());
    }
}

bool SupplyGraph::leads_towards(Rank root, Rank rank) const {
    const std::uint8_t own = range_of_[index_of(rank)];
    return leaders_[own] == rank && range_of_[index_of(root)] != own && multicasts(root);
}

Rank SupplyGraph::supplier(Rank root, Rank rank, std::uint32_t arity) const {
    if (rank == root) return kNoRank;
// A fault that the simulator must detect: the ring's last member has no supplier.
#ifdef MCC_BREAK_LAST_RING_EDGE
    if (receives(root, rank) && children_in(receivers(root), root, rank, 1).count == 0) return kNoRank;
#endif
    return receives(root, rank) ? parent_in(receivers(root), root, rank, 1)
                                : parent_in(fallback(root), root, rank, arity);
}

RankList SupplyGraph::clients(Rank root, Rank rank, std::uint32_t arity) const {
    RankList result;
    if (rank == root || !on_ring(root, rank)) result = children_in(fallback(root), root, rank, arity);
    if (!on_ring(root, rank)) return result;
    for (Rank next : children_in(receivers(root), root, rank, 1)) {
#ifdef MCC_BREAK_LAST_RING_EDGE
        if (children_in(receivers(root), root, next, 1).count == 0) continue;
#endif
        result.add(next);
    }
    return result;
}

Rank SupplyGraph::report_parent(Rank root, Rank rank, std::uint32_t arity) const {
    return receives(root, rank) ? parent_in(receivers(root), root, rank, arity) : kNoRank;
}

RankList SupplyGraph::report_children(Rank root, Rank rank, std::uint32_t arity) const {
    return on_ring(root, rank) ? children_in(receivers(root), root, rank, arity) : RankList{};
}

Rank tree_parent(Rank rank, std::uint32_t arity) {
    return rank == rank_of(0) ? kNoRank : rank_of((index_of(rank) - 1) / arity);
}

RankList tree_children(Rank rank, std::uint32_t arity, std::uint32_t members) {
    return children_in(RankSet::all_but({}, members), rank_of(0), rank, arity);
}

std::uint32_t tree_size(Rank rank, std::uint32_t arity, std::uint32_t members) {
    std::uint64_t size = 0, first = index_of(rank), last = first;
    for (; first < members; first = first * arity + 1, last = last * arity + arity)
        size += std::min<std::uint64_t>(last, members - 1) - first + 1;
    return static_cast<std::uint32_t>(size);
}

}  // namespace mcastcoll::engine
