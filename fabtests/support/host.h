// Where members are: on this host or those of a virtual cluster (util/cluster).
#pragma once

#include <string>

namespace mcastcoll::fabtest {

// From here on this process and its children find no symbols of the kernel. libfabric 1.17 reads all of them
// twice in each process, for devices that are not here: 70 ms of a core, most of the life of a short process.
// Without the right to do so nothing changes.
void hide_kernel_symbols();
// How many hosts the cluster of that name (VC) has; fails if it is not up.
unsigned hosts_of(const std::string& cluster);
// From here on this process is on host h<number> of the cluster: its network, name and /dev/shm, as
// util/cluster/on has it. Needs root.
void enter_host(const std::string& cluster, unsigned number);

}  // namespace mcastcoll::fabtest
