// Made-up places for tests.
#pragma once

#include "topology/tree.h"

namespace mcastcoll::test {

// "site=A host=h1 package=0": the identity of a name is its hash, of a number the number itself.
topology::Place place(const std::string& words);
std::vector<topology::Place> places(const std::vector<std::string>& words);

// Sites with hosts with packages with cores, a rank on each core; ranks are assigned in blocks.
struct Grid {
    unsigned sites = 1, hosts = 1, packages = 1, cores = 1;
};
std::vector<topology::Place> grid(const Grid& sizes);

bool together(const topology::Map& map, Rank one, Rank other, topology::Level level);
// The innermost level of the tree with both members in one cluster.
topology::Level common(const topology::Map& map, Rank one, Rank other);
// Edges between this rank and the root.
std::size_t distance(const topology::Tree& tree, Rank rank);

}  // namespace mcastcoll::test
