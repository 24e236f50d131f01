// The sites file: the networks of each site, its gateway, and settings of the gateway sessions. All gateways
// and processes use the same file. An error is reported with file and line.
//
//     [site lyon]                            # any number of sites
//     networks = 10.1.0.0/16, fd00:1::/64
//     gateway = 10.1.0.1:7400                # address for the site's processes
//     wan = 192.0.2.1:7400                   # address for other gateways; default: the same
//     reach = 10.2.0.0/16:5000-5999          # targets in other sites that its processes may connect to
//                                            # (default: ports from 32768 on)
//     [sessions]                             # optional, like each line in it
//     streams = 8
//     congestion = cubic
//     cap = 0                                # Mbit/s per gateway session and direction; 0: none
//     key = FILE                             # relative to the sites file
#pragma once

#include <optional>
#include <vector>

#include "sites/endpoint.h"
#include "sites/reach.h"
#include "topology/subnet.h"

namespace mcastcoll::sites {

inline constexpr std::size_t kMaxSites = 256, kMaxNetworks = 256, kMaxReach = 256, kMaxSiteName = 23;
inline constexpr unsigned kMaxStreams = 32;
// Kernels assign ports from this number on to processes that request no specific port. Services have lower
// ports.
inline constexpr std::uint16_t kFirstFreePort = 32768;

struct Site {
    std::string name;
    std::vector<topology::Subnet> networks;
    Endpoint gateway, wan;
    std::optional<std::vector<Reach>> reach;  // without a value: any address, ports from kFirstFreePort on

    bool may_reach(const Endpoint& target) const;
};

struct SessionOptions {
    unsigned streams = 8;
    std::string congestion;  // empty: the system's default
    std::uint64_t cap_mbit = 0;
    std::string key_file;
};

struct Sites {
    std::vector<Site> sites;
    SessionOptions sessions;

    // Returns the site with the most specific network that contains this address, or nullptr.
    const Site* site_of(const Endpoint& endpoint) const;
    const Site* named(std::string_view name) const;
};

// name: the name of the file, for error messages.
Result<Sites> parse_sites(std::string_view text, std::string_view name);
Result<Sites> read_sites(const std::string& path);

}  // namespace mcastcoll::sites
