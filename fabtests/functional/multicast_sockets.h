// Finds the sockets of other processes of this host in the kernel's tables, as an intruder would.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace mcastcoll::fabtest {

// The inodes of these processes' sockets, by which the tables of /proc/net name sockets.
std::set<std::string> socket_inodes_of(const std::vector<pid_t>& processes);

// IPv4 groups with the ports to which sockets of these processes are bound. The tables do not show the groups
// of a socket, so the result has every group of the host, but only these ports: tests do not send to ports of
// other programs.
std::vector<sockaddr_in> multicast_sockets_of(const std::vector<pid_t>& processes);

// Addresses of the interfaces that are up and have an IPv4 address.
std::vector<in_addr> interface_addresses();

}  // namespace mcastcoll::fabtest
