// Which networks are one site, from measured round trips between them. Pure.
//
// Networks less than a millisecond apart are one site. Campuses are wider: when the round trips above that
// fall in two classes, ten times apart, and the nearer ones are below ten milliseconds, the nearer ones too
// are within a site. Nearness is passed on: who is near one network of a site belongs to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace mcastcoll::topology {

// Numbers of two networks (or hosts, to find out whether a network is more than one site), and the shortest
// round trip seen between them.
struct RoundTrip {
    std::uint32_t one = 0, other = 0;
    Nanoseconds time{};
};

struct SiteRule {
    Nanoseconds near = Nanoseconds::from_ms(1);
    Nanoseconds campus = Nanoseconds::from_ms(10);
    std::int64_t factor = 10;
};

// Round trips up to this long are within a site.
Nanoseconds site_diameter(std::span<const RoundTrip> round_trips, const SiteRule& rule = {});
// Sites of `count` networks, dense numbers in order of their first ones. What was not measured is not near;
// numbers beyond `count` are ignored.
std::vector<std::uint32_t> merge_sites(std::uint32_t count, std::span<const RoundTrip> round_trips,
                                       const SiteRule& rule = {});

}  // namespace mcastcoll::topology
