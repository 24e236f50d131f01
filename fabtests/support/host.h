// Hosts that members run on: this host, or the hosts of a virtual cluster (util/cluster).
#pragma once

#include <string>

namespace mcastcoll::fabtest {

// Hides the kernel's symbols from this process and its children. libfabric 1.17 reads the symbols twice in
// each process, to look for devices absent here: 70 ms of a core, most of the run time of a short process.
// Without the necessary privilege the function has no effect.
void hide_kernel_symbols();
// Number of hosts of the cluster with this name (VC); fails if the cluster is not up.
unsigned hosts_of(const std::string& cluster);
// Moves this process to host h<number> of the cluster: its network, host name and /dev/shm, as
// util/cluster/on does. Needs root.
void enter_host(const std::string& cluster, unsigned number);

}  // namespace mcastcoll::fabtest
