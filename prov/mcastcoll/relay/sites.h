// The sites file: which networks belong to which site, where each site's gateway is, and how trunks between
// gateways are.  One file for all gateways and processes; what is wrong in it is said with file and line.
//
//     [site lyon]                            # any number of sites
//     networks = 10.1.0.0/16, fd00:1::/64
//     gateway = 10.1.0.1:7400                # where the site's processes connect to
//     wan = 192.0.2.1:7400                   # where other gateways do; default: the same
//     reach = 10.2.0.0/16:5000-5999          # what its processes may connect to in other sites
//                                            # (default: ports from 32768 on)
//     [trunks]                               # optional, and every line of it is
//     streams = 8
//     congestion = cubic
//     cap = 0                                # Mbit/s of a trunk in one direction; 0: none
//     key = FILE                             # relative to the sites file
#pragma once

#include <optional>
#include <vector>

#include "relay/endpoint.h"
#include "relay/reach.h"
#include "topology/subnet.h"

namespace mcastcoll::relay {

inline constexpr std::size_t kMaxSites = 256, kMaxNetworks = 256, kMaxReach = 256, kMaxSiteName = 23;
inline constexpr unsigned kMaxStreams = 32;
// Kernels give processes that ask for no port in particular one from here on; services have lower ones.
inline constexpr std::uint16_t kFirstFreePort = 32768;

struct Site {
    std::string name;
    std::vector<topology::Subnet> networks;
    Endpoint gateway, wan;
    std::optional<std::vector<Reach>> reach;  // nothing: ports from kFirstFreePort on

    bool may_reach(const Endpoint& target) const;
};

struct TrunkOptions {
    unsigned streams = 8;
    std::string congestion;  // empty: what the system has
    std::uint64_t cap_mbit = 0;
    std::string key_file;
};

struct Sites {
    std::vector<Site> sites;
    TrunkOptions trunks;

    // The site whose network holds this address, the most specific one; none: nullptr.
    const Site* site_of(const Endpoint& endpoint) const;
    const Site* named(std::string_view name) const;
};

// name: of the file, for messages.
Result<Sites> parse_sites(std::string_view text, std::string_view name);
Result<Sites> read_sites(const std::string& path);

}  // namespace mcastcoll::relay
