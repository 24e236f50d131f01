// Traffic over the links between sites, and from the switches into each machine: the measure of a hierarchy's
// benefit.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "link_traffic.h"

namespace mcastcoll::sim {

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
