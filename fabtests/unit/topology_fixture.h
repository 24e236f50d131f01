// Places that tests make up.
#pragma once

#include <string>
#include <vector>

#include "topology/levels.h"

namespace mcastcoll::test {

// "site=A host=h1 package=0": the identity of a name is its hash, of a number itself.
topology::Place place(const std::string& words);
std::vector<topology::Place> places(const std::vector<std::string>& words);

// Sites with hosts with packages with cores, a rank on each core; ranks go through the places in blocks.
struct Grid {
    unsigned sites = 1, hosts = 1, packages = 1, cores = 1;
};
std::vector<topology::Place> grid(const Grid& sizes);

}  // namespace mcastcoll::test
