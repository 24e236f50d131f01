#include "engine/supply_graph.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::engine {
namespace {

// Members of the set without the root: those that stand behind it.
std::uint32_t length_behind(const RankSet& set, Rank root) {
    return set.size() - (set.contains(root) ? 1U : 0U);
}

// Position in ring order behind the root, which itself is left out: 1 is the first behind it.
std::uint32_t position(const RankSet& set, Rank root, Rank rank) {
    assert(set.contains(rank) && rank != root);
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

RankList children_at(const RankSet& set, Rank root, std::uint32_t position, std::uint32_t arity) {
    assert(arity >= 1 && arity <= kMaxArity);
    RankList children;
    const std::uint32_t last = length_behind(set, root);
    for (std::uint64_t child = std::uint64_t{position} * arity + 1; child <= last && children.count < arity;
         ++child)
        children.add(at_position(set, root, static_cast<std::uint32_t>(child)));
    return children;
}

}  // namespace

void SupplyGraph::set_verdict(Verdict verdict) {
    verdict_ = std::move(verdict);
    leaders_.clear();
    supplied_.clear();
    healthy_ =
        verdict_.works && verdict_.deaf.empty() && verdict_.mute.empty() && range_of_.empty() && members_ > 1;
    if (range_of_.empty() || !verdict_.works) return;
    // The first member of a range that hears and is heard leads it.
    leaders_.assign(1U + *std::max_element(range_of_.begin(), range_of_.end()), kNoRank);
    std::vector<bool> needs_leader(leaders_.size());
    const RankSet mute = RankSet::of(verdict_.mute, members_);
    for (std::uint32_t i = 0; i < members_; ++i) {
        const Rank rank = rank_of(i);
        if (deaf(rank)) continue;
        needs_leader[range_of_[i]] = true;
        if (leaders_[range_of_[i]] == kNoRank && !mute.contains(rank)) leaders_[range_of_[i]] = rank;
    }
    for (std::size_t range = 0; range < leaders_.size(); ++range)
        if (needs_leader[range] && leaders_[range] == kNoRank) return;
    supplied_.assign(leaders_.size(), verdict_.deaf);
    for (std::size_t range = 0; range < leaders_.size(); ++range) {
        for (std::size_t other = 0; other < leaders_.size(); ++other)
            if (other != range && leaders_[other] != kNoRank) supplied_[range].push_back(leaders_[other]);
        std::sort(supplied_[range].begin(), supplied_[range].end());
    }
}

bool SupplyGraph::is_audible(Rank root) const {
    return verdict_.works && !RankSet::of(verdict_.mute, members_).contains(root) &&
           length_behind(listening(), root) > 0;
}

bool SupplyGraph::leads_towards(Rank root, Rank rank) const {
    const std::uint8_t own = range_of_[index_of(rank)];
    return leaders_[own] == rank && range_of_[index_of(root)] != own && multicasts(root);
}

bool SupplyGraph::reaches_anybody(Rank root) const {
    return audible(root) && length_behind(hearing(root), root) > 0;
}

Rank SupplyGraph::supplier(Rank root, Rank rank, std::uint32_t arity) const {
    if (rank == root) return kNoRank;
#ifdef MCC_BREAK_LAST_RING_EDGE  // the simulator must notice: the ring's last member has no supplier
    if (hears(root, rank) && position(hearing(root), root, rank) == length_behind(hearing(root), root))
        return kNoRank;
#endif
    if (hears(root, rank)) return at_position(hearing(root), root, position(hearing(root), root, rank) - 1);
    const RankSet set = fallback(root);
    return at_position(set, root, (position(set, root, rank) - 1) / arity);
}

RankList SupplyGraph::clients(Rank root, Rank rank, std::uint32_t arity) const {
    const bool on_ring = rank == root ? multicasts(root) : hears(root, rank);
    const bool on_tree = rank == root || !on_ring;
    RankList result;
    if (on_tree) {
        const RankSet set = fallback(root);
        result = children_at(set, root, rank == root ? 0 : position(set, root, rank), arity);
    }
    if (on_ring) {
        const std::uint32_t mine = rank == root ? 0 : position(hearing(root), root, rank);
#ifdef MCC_BREAK_LAST_RING_EDGE
        if (mine + 1 == length_behind(hearing(root), root)) return result;
#endif
        if (mine < length_behind(hearing(root), root)) result.add(at_position(hearing(root), root, mine + 1));
    }
    return result;
}

Rank SupplyGraph::report_parent(Rank root, Rank rank, std::uint32_t arity) const {
    if (!hears(root, rank)) return kNoRank;
    return at_position(hearing(root), root, (position(hearing(root), root, rank) - 1) / arity);
}

RankList SupplyGraph::report_children(Rank root, Rank rank, std::uint32_t arity) const {
    if (rank == root) return multicasts(root) ? children_at(hearing(root), root, 0, arity) : RankList{};
    return hears(root, rank) ? children_at(hearing(root), root, position(hearing(root), root, rank), arity)
                             : RankList{};
}

Rank tree_parent(Rank rank, std::uint32_t arity) {
    return rank == rank_of(0) ? kNoRank : rank_of((index_of(rank) - 1) / arity);
}

RankList tree_children(Rank rank, std::uint32_t arity, std::uint32_t members) {
    RankList children;
    for (std::uint64_t child = std::uint64_t{index_of(rank)} * arity + 1;
         child < members && children.count < arity; ++child)
        children.add(rank_of(child));
    return children;
}

std::uint32_t tree_size(Rank rank, std::uint32_t arity, std::uint32_t members) {
    std::uint64_t size = 0, first = index_of(rank), last = first;
    for (; first < members; first = first * arity + 1, last = last * arity + arity)
        size += std::min<std::uint64_t>(last, members - 1) - first + 1;
    return static_cast<std::uint32_t>(size);
}

}  // namespace mcastcoll::engine
