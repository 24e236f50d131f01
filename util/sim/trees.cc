#include "trees.h"

#include <algorithm>
#include <bit>
#include <span>

namespace mcastcoll::sim {
namespace {

using Ranks = std::vector<std::uint32_t>;
using ClusterOf = std::function<std::uint32_t(std::uint32_t rank)>;
using Connect = void (*)(Tree& tree, const Ranks& members);  // members[0] is the root of the others

struct Level {
    ClusterOf cluster_of;
    Connect leaders;  // how the clusters' leaders are connected
};

void connect_flat(Tree& tree, const Ranks& members) {
    tree[members[0]].insert(tree[members[0]].end(), members.begin() + 1, members.end());
}

// Counted from the root, member v passes the message on to v + 2^k for every 2^k below v's lowest set bit,
// the farthest first.
void connect_binomial(Tree& tree, const Ranks& members) {
    const auto count = static_cast<std::uint32_t>(members.size());
    for (std::uint32_t v = 0; v < count; ++v) {
        std::uint32_t bit = v == 0 ? std::bit_ceil(count) : v & (~v + 1);
        for (bit >>= 1; bit > 0; bit >>= 1)
            if (v + bit < count) tree[members[v]].push_back(members[v + bit]);
    }
}

// The root first, then those behind it, then those before it, all in order.
void rotate_to(Ranks& members, std::uint32_t root) {
    std::rotate(members.begin(), std::find(members.begin(), members.end(), root), members.end());
}

void build(Tree& tree, Ranks members, std::uint32_t root, std::span<const Level> levels) {
    if (levels.empty()) {
        rotate_to(members, root);
        return connect_binomial(tree, members);
    }
    std::vector<std::uint32_t> clusters;  // in the order of their lowest ranks
    std::vector<Ranks> inside;
    for (const std::uint32_t rank : members) {
        const std::uint32_t cluster = levels[0].cluster_of(rank);
        const auto at = std::find(clusters.begin(), clusters.end(), cluster) - clusters.begin();
        if (static_cast<std::size_t>(at) == clusters.size()) {
            clusters.push_back(cluster);
            inside.emplace_back();
        }
        inside[static_cast<std::size_t>(at)].push_back(rank);
    }
    Ranks leaders;
    for (const Ranks& cluster : inside)
        leaders.push_back(std::find(cluster.begin(), cluster.end(), root) == cluster.end() ? cluster[0]
                                                                                           : root);
    rotate_to(leaders, root);
    levels[0].leaders(tree, leaders);
    for (Ranks& cluster : inside) {
        const std::uint32_t leader =
            std::find(cluster.begin(), cluster.end(), root) == cluster.end() ? cluster[0] : root;
        build(tree, std::move(cluster), leader, levels.subspan(1));
    }
}

Tree build_all(std::uint32_t ranks, std::uint32_t root, std::span<const Level> levels) {
    Tree tree(ranks);
    Ranks members(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) members[rank] = rank;
    build(tree, std::move(members), root, levels);
    return tree;
}

}  // namespace

Tree binomial_tree(std::uint32_t ranks, std::uint32_t root) {
    return build_all(ranks, root, {});
}

TreeOf tree_of(TreeShape shape, const Layout& layout) {
    const ClusterOf site = [layout](std::uint32_t rank) { return layout.site(rank); };
    const ClusterOf machine = [layout](std::uint32_t rank) { return layout.machine(rank); };
    std::vector<Level> levels;
    switch (shape) {
        case TreeShape::binomial:
            break;
        case TreeShape::by_machine:
            levels = {{machine, connect_flat}};
            break;
        case TreeShape::by_site:
            levels = {{site, connect_flat}};
            break;
        case TreeShape::multilevel:
            levels = {{site, connect_flat}, {machine, connect_binomial}};
            break;
    }
    return [levels](std::uint32_t ranks, std::uint32_t root) { return build_all(ranks, root, levels); };
}

}  // namespace mcastcoll::sim
