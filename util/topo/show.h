// A group's levels and tree, for people.
#pragma once

#include <string>
#include <vector>

#include "topology/map.h"
#include "topology/report.h"
#include "topology/tree.h"

namespace mcastcoll::topo {

std::string levels_as_text(const topology::Map& map, const std::vector<topology::ReportedLevel>& levels);
// Indented; neighbours without children stand on one line, as ranges of ranks.
std::string tree_as_text(const topology::Map& map, const topology::Tree& tree);
std::string as_svg(const topology::Map& map, const topology::Tree& tree);

// "0-3,7,9"
std::string ranges(const std::vector<Rank>& ranks);
// The cluster's name at the outermost level that tells this rank from its parent, "host h3".
std::string where(const topology::Map& map, Rank rank);

}  // namespace mcastcoll::topo
