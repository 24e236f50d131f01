// The machine of each host, and the site of each machine.
#pragma once

#include <cstdint>
#include <vector>

namespace mcastcoll::sim {

struct Layout {
    std::vector<std::uint32_t> machine_of;  // empty: each host is a machine
    std::vector<std::uint32_t> site_of;     // empty: all in site 0

    // sites[s][m] is the number of hosts on machine m of site s.
    static Layout of(const std::vector<std::vector<std::uint32_t>>& sites);
    std::uint32_t machine(std::uint32_t host) const { return machine_of.empty() ? host : machine_of[host]; }
    std::uint32_t site(std::uint32_t host) const { return site_of.empty() ? 0 : site_of[machine(host)]; }
};

}  // namespace mcastcoll::sim
