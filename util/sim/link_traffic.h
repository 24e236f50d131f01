// Traffic of the simulated network.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "transmission.h"

namespace mcastcoll::sim {

// Traffic through a place in one direction.
struct LinkTraffic {
    std::uint64_t packets = 0, bytes = 0, payload_bytes = 0;

    void add(const Transmission& transmission) {
        ++packets;
        bytes += transmission.size();
        payload_bytes += transmission.payload_bytes;
    }
    LinkTraffic operator-(const LinkTraffic& before) const {
        return {packets - before.packets, bytes - before.bytes, payload_bytes - before.payload_bytes};
    }
};

// Traffic over the links between sites, and from the switches into each machine: the measure of a hierarchy's
// benefit.
struct TrafficByLink {
    std::vector<LinkTraffic> links;  // from one site to another: [from * sites + to]
    std::vector<LinkTraffic> into;   // by machine

    TrafficByLink operator-(const TrafficByLink& before) const {
        TrafficByLink since = *this;
        std::transform(links.begin(), links.end(), before.links.begin(), since.links.begin(), std::minus{});
        std::transform(into.begin(), into.end(), before.into.begin(), since.into.begin(), std::minus{});
        return since;
    }
};

}  // namespace mcastcoll::sim
