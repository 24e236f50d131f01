#include "topology/sites.h"

#include <algorithm>
#include <numeric>

namespace mcastcoll::topology {

Nanoseconds site_diameter(std::span<const RoundTrip> round_trips, const SiteRule& rule) {
    std::vector<Nanoseconds> times;
    for (const RoundTrip& one : round_trips)
        if (one.time >= rule.near) times.push_back(one.time);
    std::sort(times.begin(), times.end());
    for (std::size_t i = 0; i + 1 < times.size() && times[i] < rule.campus; ++i)
        if (times[i + 1].value / rule.factor >= times[i].value) return times[i];
    return rule.near - Nanoseconds{1};
}

std::vector<std::uint32_t> merge_sites(std::uint32_t count, std::span<const RoundTrip> round_trips,
                                       const SiteRule& rule) {
    const Nanoseconds diameter = site_diameter(round_trips, rule);
    std::vector<std::uint32_t> first_of(count);
    std::iota(first_of.begin(), first_of.end(), 0U);
    const auto find = [&first_of](std::uint32_t at) {
        while (first_of[at] != at) at = first_of[at] = first_of[first_of[at]];
        return at;
    };
    for (const RoundTrip& trip : round_trips) {
        if (trip.one >= count || trip.other >= count || trip.time > diameter) continue;
        const std::uint32_t one = find(trip.one), other = find(trip.other);
        first_of[std::max(one, other)] = std::min(one, other);
    }
    std::vector<std::uint32_t> site_of(count);
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < count; ++i) site_of[i] = find(i) == i ? next++ : site_of[find(i)];
    return site_of;
}

}  // namespace mcastcoll::topology
