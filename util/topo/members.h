// Members of a group that is described, not running: a file of places, or ranks put on machines made up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/place.h"

namespace mcastcoll::topo {

// A line for each member, or for COUNT of them:
//     [COUNT*] [LEVEL=VALUE ...]      # site=A host=h1 package=0 core=3
// A value inside a host is a number. `file` is its name, for complaints.
Result<std::vector<topology::Place>> parse_members(std::string_view text, std::string_view file);

struct MadeUp {
    std::string machine;          // hwloc's synthetic description
    std::string hosts = "1";      // "4", or "A:2,B:3": hosts of each site
    unsigned ranks = 0;           // on each host; 0: one for each place to bind to
    std::string bind = "core";    // a level inside the host, or "none"
    std::string order = "block";  // ranks fill a host before the next one, or "cyclic"
};
Result<std::vector<topology::Place>> make_members(const MadeUp& wanted);

inline constexpr std::size_t kMostMembers = 1 << 20;

}  // namespace mcastcoll::topo
