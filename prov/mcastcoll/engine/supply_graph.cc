#include "engine/supply_graph.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::engine {

SupplyGraph::SupplyGraph(std::uint32_t members) : is_deaf_(members, true), is_mute_(members, true) {
    for (std::uint32_t i = 0; i < members; ++i) everybody_.push_back(rank_of(i));
    deaf_ = everybody_;
}

void SupplyGraph::set_verdict(const std::vector<bool>& deaf, const std::vector<bool>& mute) {
    assert(deaf.size() == everybody_.size() && mute.size() == everybody_.size());
    is_deaf_ = deaf;
    is_mute_ = mute;
    hearing_.clear();
    deaf_.clear();
    for (Rank rank : everybody_) (is_deaf_[index_of(rank)] ? deaf_ : hearing_).push_back(rank);
}

bool SupplyGraph::multicasts(Rank root) const {
    return !is_mute_[index_of(root)] && length_behind(hearing_, root) > 0;
}

bool SupplyGraph::hears(Rank root, Rank rank) const {
    return rank != root && multicasts(root) && !is_deaf_[index_of(rank)];
}

std::uint32_t SupplyGraph::length_behind(const std::vector<Rank>& list, Rank root) {
    const bool contains_root = std::binary_search(list.begin(), list.end(), root);
    return static_cast<std::uint32_t>(list.size()) - (contains_root ? 1U : 0U);
}

std::uint32_t SupplyGraph::position(const std::vector<Rank>& list, Rank root, Rank rank) const {
    const auto size = static_cast<std::uint32_t>(list.size());
    const auto first =
        static_cast<std::uint32_t>(std::upper_bound(list.begin(), list.end(), root) - list.begin());
    const auto mine =
        static_cast<std::uint32_t>(std::lower_bound(list.begin(), list.end(), rank) - list.begin());
    assert(mine < size && list[mine] == rank && rank != root);
    return (mine + size - first) % size + 1;
}

Rank SupplyGraph::at_position(const std::vector<Rank>& list, Rank root, std::uint32_t position) const {
    if (position == 0) return root;
    const auto first =
        static_cast<std::uint32_t>(std::upper_bound(list.begin(), list.end(), root) - list.begin());
    return list[(first + position - 1) % list.size()];
}

RankList SupplyGraph::tree_children(const std::vector<Rank>& list, Rank root, std::uint32_t position,
                                    std::uint32_t arity) const {
    assert(arity >= 1 && arity <= kMaxArity);
    RankList children;
    const std::uint32_t last = length_behind(list, root);
    for (std::uint64_t child = std::uint64_t{position} * arity + 1; child <= last && children.count < arity;
         ++child)
        children.add(at_position(list, root, static_cast<std::uint32_t>(child)));
    return children;
}

Rank SupplyGraph::supplier(Rank root, Rank rank, std::uint32_t arity) const {
    if (rank == root) return kNoRank;
    if (hears(root, rank)) return at_position(hearing_, root, position(hearing_, root, rank) - 1);
    const auto& list = fallback(root);
    return at_position(list, root, (position(list, root, rank) - 1) / arity);
}

RankList SupplyGraph::clients(Rank root, Rank rank, std::uint32_t arity) const {
    const bool on_ring = rank == root ? multicasts(root) : hears(root, rank);
    const bool on_tree = rank == root || !on_ring;
    RankList result;
    if (on_tree) {
        const auto& list = fallback(root);
        result = tree_children(list, root, rank == root ? 0 : position(list, root, rank), arity);
    }
    if (on_ring) {
        const std::uint32_t mine = rank == root ? 0 : position(hearing_, root, rank);
        if (mine < length_behind(hearing_, root)) result.add(at_position(hearing_, root, mine + 1));
    }
    return result;
}

Rank SupplyGraph::report_parent(Rank root, Rank rank, std::uint32_t arity) const {
    if (!hears(root, rank)) return kNoRank;
    return at_position(hearing_, root, (position(hearing_, root, rank) - 1) / arity);
}

RankList SupplyGraph::report_children(Rank root, Rank rank, std::uint32_t arity) const {
    if (rank == root) return multicasts(root) ? tree_children(hearing_, root, 0, arity) : RankList{};
    return hears(root, rank) ? tree_children(hearing_, root, position(hearing_, root, rank), arity)
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

}  // namespace mcastcoll::engine
