#include "topology/tree.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::topology {

std::size_t Tree::distance(Rank rank) const {
    std::size_t edges = 0;
    for (Rank at = rank; parent(at) != kNoRank; at = parent(at)) ++edges;
    return edges;
}

Tree make_tree(const Map& map, Rank root, const Algorithms& algorithms) {
    assert(index_of(root) < map.members());
    Tree tree;
    tree.root_ = root;
    tree.parents_.assign(map.members(), kNoRank);
    tree.edge_levels_.assign(map.members(), Level::wan);

    // Edges in the order in which each parent serves them: outside in, within a level as its shape wants.
    std::vector<Rank> served;
    served.reserve(map.members());
    for (const Level level : map.levels()) {
        const Algorithm algorithm = algorithms.at(level);
        const bool last_first = algorithm.shape().last_child_first;
        for (std::uint32_t cluster = 0; cluster < map.clusters(level); ++cluster) {
            std::vector<Rank> nodes = map.connected_by(level, cluster, root);
            // The cluster's own leader is the root of this part; the others follow it in a ring, so that
            // every root has a tree of the same form.
            std::rotate(nodes.begin(),
                        std::find(nodes.begin(), nodes.end(), map.leader(level, cluster, root)), nodes.end());
            for (std::size_t i = 1; i < nodes.size(); ++i) {
                const std::size_t node = last_first ? nodes.size() - i : i;
                const std::size_t child = index_of(nodes[node]);
                tree.parents_[child] = nodes[algorithm.parent_of(node)];
                tree.edge_levels_[child] = level;
                served.push_back(nodes[node]);
            }
        }
    }

    tree.starts_.assign(map.members() + 1, 0);
    for (const Rank child : served) ++tree.starts_[index_of(tree.parent(child)) + 1];
    for (std::size_t i = 0; i < map.members(); ++i) tree.starts_[i + 1] += tree.starts_[i];
    std::vector<std::uint32_t> next(tree.starts_.begin(), tree.starts_.end() - 1);
    tree.children_.resize(served.size());
    for (const Rank child : served) tree.children_[next[index_of(tree.parent(child))]++] = child;
    return tree;
}

}  // namespace mcastcoll::topology
