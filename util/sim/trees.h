// The trees that broadcasts of point-to-point messages walk, for Karonis et al., "Exploiting Hierarchy in
// Parallel Computer Networks to Optimize Collective Operation Performance" (IPDPS 2000). All are built of one
// piece: the members of a cluster are split into the clusters inside, whose leaders get the message first,
// and so on inwards. The root leads its cluster at every level, otherwise the lowest rank does.
//
//   binomial    no clusters: what MPICH does without knowing where its processes are
//   by machine  MagPIe's two levels with machines as clusters: flat between machines, binomial inside
//   by site     the same with sites as clusters
//   multilevel  sites, then machines, then processes; flat between sites, binomial otherwise
//
// Flat between sites, since with latencies that long all messages are under way at once; binomial where
// sending costs more than waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "network.h"

namespace mcastcoll::sim {

// The children of each rank, in the order in which it sends to them.
using Tree = std::vector<std::vector<std::uint32_t>>;
using TreeOf = std::function<Tree(std::uint32_t ranks, std::uint32_t root)>;

enum class TreeShape : std::uint8_t { binomial, by_machine, by_site, multilevel };
inline constexpr TreeShape kTreeShapes[] = {TreeShape::binomial, TreeShape::by_machine, TreeShape::by_site,
                                            TreeShape::multilevel};
constexpr std::string_view name_of(TreeShape shape) {
    constexpr std::string_view kNames[] = {"binomial", "by_machine", "by_site", "multilevel"};
    return kNames[static_cast<std::uint8_t>(shape)];
}

Tree binomial_tree(std::uint32_t ranks, std::uint32_t root);
// Rank r is host r of the layout.
TreeOf tree_of(TreeShape shape, const Layout& layout);

}  // namespace mcastcoll::sim
