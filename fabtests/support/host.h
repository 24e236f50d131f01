// The hosts of a virtual cluster (util/cluster), as members' homes.
#pragma once

#include <string>

namespace mcastcoll::fabtest {

// How many hosts the cluster of that name (VC) has; fails if it is not up.
unsigned hosts_of(const std::string& cluster);
// From here on this process is on host h<number> of the cluster: its network, name and /dev/shm, as
// util/cluster/on has it. Needs root.
void enter_host(const std::string& cluster, unsigned number);

}  // namespace mcastcoll::fabtest
