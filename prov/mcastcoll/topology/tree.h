// The multilevel tree of a broadcast (Karonis et al. 2000): at each level the leaders of neighbouring
// clusters are connected by that level's algorithm, and the root replaces the leader of every cluster it is
// in. So one edge leads into each cluster except the root's, and the data cross a slow link once.
//
// Two levels differ. In a segment the leader of the root's host sends, since only host leaders take part in
// the multicast. In a host every receiver reads the sender's data in one step, whatever the levels inside the
// host.
//
// The levels follow this tree; fabtests/unit/test_tree_of_levels.cc compares the two for every root.
#pragma once

#include "topology/map.h"

namespace mcastcoll::topology {

class Tree {
  public:
    // `root` is a member.
    Tree(const Map& map, Rank root);
    Rank root() const { return root_; }
    std::size_t members() const { return parents_.size(); }
    // kNoRank for the root.
    Rank parent(Rank rank) const { return parents_[index_of(rank)]; }
    // The level of the edge to the parent; wan for the root.
    Level level(Rank rank) const { return edge_levels_[index_of(rank)]; }
    // The children at outer levels first.
    std::span<const Rank> children(Rank rank) const {
        const std::size_t i = index_of(rank);
        return std::span(children_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
    }

  private:
    Rank root_;
    std::vector<Rank> parents_;
    std::vector<Level> edge_levels_;
    std::vector<Rank> children_;  // by parent
    std::vector<std::uint32_t> starts_;
};

}  // namespace mcastcoll::topology
