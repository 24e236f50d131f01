// Made-up places for tests.
#pragma once

#include "topology/tree.h"

namespace mcastcoll::test {

// Returns the place described by "site=A host=h1 package=0". The identity of a name is its hash, the identity
// of a number is the number itself.
topology::Place place(const std::string& words);
std::vector<topology::Place> places(const std::vector<std::string>& words);

// Numbers of sites, of hosts in each site, of packages in each host and of cores in each package. Each core
// has a rank; ranks are assigned in blocks.
struct Grid {
    unsigned sites = 1, hosts = 1, packages = 1, cores = 1;
};
std::vector<topology::Place> grid(const Grid& sizes);

bool together(const topology::Map& map, Rank one, Rank other, topology::Level level);
// The innermost level at which both members are in one cluster.
topology::Level common(const topology::Map& map, Rank one, Rank other);
// The number of edges between this rank and the root.
std::size_t distance(const topology::Tree& tree, Rank rank);

}  // namespace mcastcoll::test
