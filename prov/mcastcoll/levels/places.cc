#include "levels/places.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace mcastcoll::levels {
namespace {

// Number of leading counts: members, hosts, segments.
constexpr std::size_t kCounts = 3;

bool all_below(Ranks numbers, std::size_t bound) {
    return std::ranges::all_of(numbers, [=](std::uint32_t number) { return number < bound; });
}

}  // namespace

std::vector<std::uint32_t> Places::lay_out(const std::vector<MemberPlace>& places) {
    std::vector<std::uint32_t> hosts, segment_of_host, segments, site_of_segment, sizes;
    for (std::uint32_t rank = 0; rank < places.size(); ++rank) {
        const MemberPlace& place = places[rank];
        if (place.host >= hosts.size()) {
            hosts.push_back(rank);
            segment_of_host.push_back(place.segment);
            sizes.push_back(0);
            if (place.segment >= segments.size()) {
                segments.push_back(rank);
                site_of_segment.push_back(place.site);
            }
        }
        ++sizes[place.host];
    }
    std::vector<std::uint32_t> starts(hosts.size() + 1), by_host(places.size());
    std::partial_sum(sizes.begin(), sizes.end(), starts.begin() + 1);
    std::vector<std::uint32_t> next(starts.begin(), starts.end() - 1);
    for (std::uint32_t rank = 0; rank < places.size(); ++rank) by_host[next[places[rank].host]++] = rank;

    std::vector<std::uint32_t> numbers{static_cast<std::uint32_t>(places.size()),
                                       static_cast<std::uint32_t>(hosts.size()),
                                       static_cast<std::uint32_t>(segments.size())};
    for (const MemberPlace& place : places) numbers.push_back(place.host);
    for (const auto* part : {&hosts, &by_host, &starts, &segment_of_host, &segments, &site_of_segment})
        numbers.insert(numbers.end(), part->begin(), part->end());
    return numbers;
}

std::optional<Places> Places::view(Ranks numbers) {
    if (numbers.size() < kCounts) return {};
    const std::size_t members = numbers[0], hosts = numbers[1], segments = numbers[2];
    if (numbers.size() != kCounts + 2 * members + 3 * hosts + 1 + 2 * segments) return {};
    Ranks rest = numbers.subspan(kCounts);
    const auto take = [&](std::size_t count) {
        const Ranks part = rest.first(count);
        rest = rest.subspan(count);
        return part;
    };
    Places places;
    places.host_of_ = take(members);
    places.host_leaders_ = take(hosts);
    places.by_host_ = take(members);
    places.starts_ = take(hosts + 1);
    places.segment_of_host_ = take(hosts);
    places.segment_leaders_ = take(segments);
    places.site_of_segment_ = take(segments);
    const bool whole =
        all_below(places.host_of_, hosts) && all_below(places.host_leaders_, members) &&
        all_below(places.by_host_, members) && all_below(places.segment_of_host_, segments) &&
        all_below(places.segment_leaders_, members) && places.starts_.back() == members &&
        places.starts_.front() == 0 &&
        std::ranges::adjacent_find(places.starts_, std::greater_equal{}) == places.starts_.end();
    return whole ? std::optional(places) : std::nullopt;
}

}  // namespace mcastcoll::levels
