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
#include <set>

namespace mcastcoll::fabtest {
namespace {

// "socket:[12345]" behind /proc/PID/fd/N.
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

}  // namespace

std::vector<sockaddr_in> multicast_sockets_of(const std::vector<pid_t>& processes) {
    const std::set<std::string> inodes = socket_inodes_of(processes);
    std::vector<sockaddr_in> found;
    std::ifstream table("/proc/net/udp");
    std::string line;
    std::getline(table, line);  // the head
    while (std::getline(table, line)) {
        unsigned address = 0, port = 0;
        char inode[32] = {};
        // "sl: LOCAL:PORT REMOTE:PORT st tx:rx tr:when retrnsmt uid timeout inode ..."
        if (std::sscanf(line.c_str(), " %*[^:]: %X:%X %*s %*s %*s %*s %*s %*s %*s %31s", &address, &port,
                        inode) != 3)
            continue;
        if (!IN_MULTICAST(ntohl(address)) || inodes.count(inode) == 0) continue;
        sockaddr_in group{};
        group.sin_family = AF_INET;
        group.sin_addr.s_addr = address;
        group.sin_port = htons(static_cast<std::uint16_t>(port));
        const bool known = std::any_of(found.begin(), found.end(), [&](const sockaddr_in& one) {
            return one.sin_addr.s_addr == group.sin_addr.s_addr && one.sin_port == group.sin_port;
        });
        if (!known) found.push_back(group);
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
