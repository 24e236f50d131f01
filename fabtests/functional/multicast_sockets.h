// Finds the sockets of other processes of this host by the kernel's tables, as an intruder would.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace mcastcoll::fabtest {

// The inodes of their sockets, which the tables in /proc/net name.
std::set<std::string> socket_inodes_of(const std::vector<pid_t>& processes);

// IPv4 groups with the ports that sockets of these processes are bound to. A socket does not show its groups,
// so it is every group of the host, but only their ports: others' traffic is left alone.
std::vector<sockaddr_in> multicast_sockets_of(const std::vector<pid_t>& processes);

// All interfaces that are up and have an IPv4 address.
std::vector<in_addr> interface_addresses();

}  // namespace mcastcoll::fabtest
