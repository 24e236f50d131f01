#include "topology/tree.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::topology {

namespace {

// What a level connects in one of its clusters, the top of this part of the tree first.
std::vector<Rank> nodes_of(const Map& map, Level level, std::uint32_t cluster, Rank root) {
    if (level == Level::host) {
        const auto members = map.members_of(level, cluster);
        std::vector<Rank> nodes(members.begin(), members.end());
        const auto top = std::find(nodes.begin(), nodes.end(), map.leader(level, cluster, root));
        std::rotate(nodes.begin(), top, top + 1);
        return nodes;
    }
    const Rank sender =
        level == Level::segment ? map.leader(Level::host, map.cluster(root, Level::host)) : root;
    std::vector<Rank> nodes = map.connected_by(level, cluster, sender);
    const auto top = std::find(nodes.begin(), nodes.end(), map.leader(level, cluster, sender));
    // Hosts of a segment stand in a ring (engine/supply_graph.h); sites and segments keep their order, in
    // which their vectors are combined.
    std::rotate(nodes.begin(), top, level == Level::segment ? nodes.end() : top + 1);
    return nodes;
}

}  // namespace

Tree make_tree(const Map& map, Rank root) {
    assert(index_of(root) < map.members());
    Tree tree;
    tree.root_ = root;
    tree.parents_.assign(map.members(), kNoRank);
    tree.edge_levels_.assign(map.members(), Level::wan);

    // Children, outside in.
    std::vector<Rank> children;
    children.reserve(map.members());
    for (const Level level : map.levels()) {
        if (is_inside_host(level)) break;
        const Algorithm algorithm = map.policy().algorithms.at(level);
        for (std::uint32_t cluster = 0; cluster < map.clusters(level); ++cluster) {
            const std::vector<Rank> nodes = nodes_of(map, level, cluster, root);
            for (std::size_t node = 1; node < nodes.size(); ++node) {
                const std::size_t child = index_of(nodes[node]);
                tree.parents_[child] = nodes[algorithm.parent_of(node)];
                tree.edge_levels_[child] = level;
                children.push_back(nodes[node]);
            }
        }
    }

    tree.starts_.assign(map.members() + 1, 0);
    for (const Rank child : children) ++tree.starts_[index_of(tree.parent(child)) + 1];
    for (std::size_t i = 0; i < map.members(); ++i) tree.starts_[i + 1] += tree.starts_[i];
    std::vector<std::uint32_t> next(tree.starts_.begin(), tree.starts_.end() - 1);
    tree.children_.resize(children.size());
    for (const Rank child : children) tree.children_[next[index_of(tree.parent(child))]++] = child;
    return tree;
}

}  // namespace mcastcoll::topology
