#include "functional/multicast_sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

namespace mcastcoll::fabtest {
namespace {

// UDP ports to which any of these sockets is bound without an address.
std::set<std::uint16_t> open_ports_of(const std::set<std::string>& inodes) {
    std::set<std::uint16_t> ports;
    std::ifstream table("/proc/net/udp");
    std::string line;
    std::getline(table, line);  // header line
    while (std::getline(table, line)) {
        unsigned address = 0, port = 0;
        char inode[32] = {};
        // "sl: LOCAL:PORT REMOTE:PORT st tx:rx tr:when retrnsmt uid timeout inode ..."
        if (std::sscanf(line.c_str(), " %*[^:]: %X:%X %*s %*s %*s %*s %*s %*s %*s %31s", &address, &port,
                        inode) != 3)
            continue;
        if (address == INADDR_ANY && inodes.count(inode) > 0) ports.insert(static_cast<std::uint16_t>(port));
    }
    return ports;
}

// Multicast groups of the organization-local scope (239/8) that any process of this host has joined.
std::set<in_addr_t> joined_groups() {
    std::set<in_addr_t> groups;
    std::ifstream table("/proc/net/igmp");
    std::string line;
    while (std::getline(table, line)) {
        unsigned group = 0;
        // Below the line of an interface, a line for each of its groups: "GROUP users timer reporter".
        if (line.starts_with("\t") && std::sscanf(line.c_str(), " %8X", &group) == 1 &&
            ntohl(group) >> 24 == 239)
            groups.insert(group);
    }
    return groups;
}

}  // namespace

std::set<std::string> socket_inodes_of(const std::vector<pid_t>& processes) {
    std::set<std::string> inodes;
    for (const pid_t pid : processes) {
        std::error_code ignored;
        for (const auto& entry :
             std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), ignored)) {
            const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
            constexpr std::string_view kPrefix = "socket:[";
            if (target.starts_with(kPrefix))
                inodes.insert(target.substr(kPrefix.size(), target.size() - kPrefix.size() - 1));
        }
    }
    return inodes;
}

std::vector<sockaddr_in> multicast_sockets_of(const std::vector<pid_t>& processes) {
    // The kernel returns its tables in pieces, and may omit a line while sockets of other processes come and
    // go.
    constexpr int kReadings = 5;
    const std::set<std::string> inodes = socket_inodes_of(processes);
    std::set<std::uint16_t> ports;
    std::set<in_addr_t> groups;
    for (int reading = 0; reading < kReadings; ++reading) {
        ports.merge(open_ports_of(inodes));
        groups.merge(joined_groups());
    }
    std::vector<sockaddr_in> found;
    for (const in_addr_t address : groups)
        for (const std::uint16_t port : ports) {
            sockaddr_in group{};
            group.sin_family = AF_INET;
            group.sin_addr.s_addr = address;
            group.sin_port = htons(port);
            found.push_back(group);
        }
    return found;
}

std::vector<in_addr> interface_addresses() {
    std::vector<in_addr> addresses;
    ifaddrs* raw = nullptr;
    if (getifaddrs(&raw) != 0) return addresses;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, &freeifaddrs);
    for (const ifaddrs* one = list.get(); one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
        addresses.push_back(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr);
    }
    return addresses;
}

}  // namespace mcastcoll::fabtest
