// Where the tree that is drawn is not what a broadcast walks.
#pragma once

#include <string>
#include <vector>

#include "topology/map.h"
#include "topology/tree.h"

namespace mcastcoll::topo {

// One sentence for each difference that this group has; none where the broadcast walks what is drawn.
std::vector<std::string> differences(const topology::Map& map, const topology::Tree& tree);

}  // namespace mcastcoll::topo
