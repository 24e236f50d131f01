#include "topology/tree.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::topology {
namespace {

// Returns the nodes that a level connects in one of its clusters. The first one is the top of this subtree.
std::vector<Rank> nodes_of(const Map& map, Level level, std::uint32_t cluster, Rank root) {
    const Rank sender =
        level == Level::segment ? map.leader(Level::host, map.cluster(root, Level::host)) : root;
    const auto all = map.members_of(level, cluster);
    std::vector<Rank> nodes =
        level == Level::host ? std::vector(all.begin(), all.end()) : map.connected_by(level, cluster, sender);
    const auto top = std::find(nodes.begin(), nodes.end(), map.leader(level, cluster, sender));
    // The hosts of a segment form a ring, along which losses are repaired (engine/supply_graph.h), so the top
    // comes first by a rotation. Other levels keep the order in which vectors of sites and segments are
    // combined.
    std::rotate(nodes.begin(), top, level == Level::segment ? nodes.end() : top + 1);
    return nodes;
}

}  // namespace

Tree::Tree(const Map& map, Rank root)
    : root_(root),
      parents_(map.members(), kNoRank),
      edge_levels_(map.members(), Level::wan),
      starts_(map.members() + 1) {
    assert(index_of(root) < map.members());
    // Children, outermost level first.
    std::vector<Rank> children;
    children.reserve(map.members());
    for (const Level level : map.levels()) {
        if (is_inside_host(level)) break;
        const Algorithm algorithm = map.policy().algorithms.at(level);
        for (std::uint32_t cluster = 0; cluster < map.clusters(level); ++cluster) {
            const std::vector<Rank> nodes = nodes_of(map, level, cluster, root);
            for (std::size_t node = 1; node < nodes.size(); ++node) {
                const std::size_t child = index_of(nodes[node]);
                parents_[child] = nodes[algorithm.parent_of(node)];
                edge_levels_[child] = level;
                children.push_back(nodes[node]);
            }
        }
    }

    for (const Rank child : children) ++starts_[index_of(parent(child)) + 1];
    for (std::size_t i = 0; i < map.members(); ++i) starts_[i + 1] += starts_[i];
    std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
    children_.resize(children.size());
    for (const Rank child : children) children_[next[index_of(parent(child))]++] = child;
}

}  // namespace mcastcoll::topology
