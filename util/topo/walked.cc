// The drawn tree follows the words of the policy at every level.  What carries a level out (shared memory,
// the engine, messages between sites) knows fewer shapes.
#include "walked.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/supply_graph.h"

namespace mcastcoll::topo {

using topology::Algorithm;
using topology::Level;
using topology::Map;
using topology::Tree;

namespace {

std::string_view shape_at(const Map& map, Level level) {
    return map.policy().algorithms.at(level).shape().name;
}

bool connects_inside_host(const Map& map) {
    return std::any_of(map.levels().begin(), map.levels().end(), topology::is_inside_host);
}

std::string in_host(const Map& map) {
    if (shape_at(map, Level::host) != "shm" && (map.connects(Level::host) || connects_inside_host(map)))
        return fmt::format(
            "host: with {} there is no shared memory, and every process takes part in its segment as a host "
            "of its own",
            map.policy().algorithms.at(Level::host).name());
    if (connects_inside_host(map))
        return "host: all read what one has written to shared memory, in one step, whatever is drawn inside "
               "the host";
    return {};
}

std::string in_segment(const Map& map) {
    const Algorithm algorithm = map.policy().algorithms.at(Level::segment);
    const std::string_view shape = algorithm.shape().name;
    if (!map.connects(Level::segment) || shape == "multicast" || shape == "chain" ||
        (algorithm.arity() > 0 && algorithm.arity() <= engine::kMaxArity))
        return {};
    return fmt::format("segment: instead of {} messages take a tree with {} children to a host",
                       algorithm.name(), engine::kMaxArity);
}

std::string of_root(const Map& map, Rank root) {
    const Rank leader = map.leader(Level::host, map.cluster(root, Level::host));
    const auto segment = map.connected_by(Level::segment, map.cluster(root, Level::segment), root);
    if (segment.size() < 2 || leader == root || shape_at(map, Level::host) != "shm") return {};
    return fmt::format("segment: rank {}, the first of the root's host, sends for the root",
                       index_of(leader));
}

// Who is walked to first is the root; a ring that begins at its first or last node has the others in their
// order, too.
std::string between_sites(const Map& map, Level level, Rank root) {
    const auto nodes = map.connected_by(level, map.cluster(root, level), root);
    if (nodes.size() < 3 || shape_at(map, level) == "flat" || nodes.front() == root || nodes.back() == root)
        return {};
    return fmt::format("{}: after the root come the others in the order of ranks, not of a ring",
                       topology::name_of(level));
}

}  // namespace

std::vector<std::string> differences(const Map& map, const Tree& tree) {
    std::vector<std::string> all{between_sites(map, Level::wan, tree.root()),
                                 between_sites(map, Level::site, tree.root()), of_root(map, tree.root()),
                                 in_segment(map), in_host(map)};
    std::erase_if(all, [](const std::string& one) { return one.empty(); });
    return all;
}

}  // namespace mcastcoll::topo
