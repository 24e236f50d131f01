#include "topology/site_survey.h"

#include <algorithm>
#include <numeric>

namespace mcastcoll::topology {
namespace {

constexpr Nanoseconds kNear = Nanoseconds::from_ms(1), kCampus = Nanoseconds::from_ms(10);
constexpr std::int64_t kFactor = 10;

// Returns the longest round trip within a site.
Nanoseconds site_diameter(std::span<const RoundTrip> round_trips) {
    std::vector<Nanoseconds> times;
    for (const RoundTrip& one : round_trips)
        if (one.time >= kNear) times.push_back(one.time);
    std::sort(times.begin(), times.end());
    for (std::size_t i = 0; i + 1 < times.size() && times[i] < kCampus; ++i)
        if (times[i + 1].value / kFactor >= times[i].value) return times[i];
    return kNear - Nanoseconds{1};
}

// True if the place's site is its segment: the user has not named a site.
bool is_network(const Place& place) {
    const auto& site = place.at(Level::site);
    const auto& segment = place.at(Level::segment);
    return site && segment && site->id == segment->id;
}

}  // namespace

std::vector<std::uint32_t> merge_sites(std::uint32_t count, std::span<const RoundTrip> round_trips) {
    const Nanoseconds diameter = site_diameter(round_trips);
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

SiteSurvey::SiteSurvey(std::span<const Place> places) {
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        if (is_network(places[rank]) && !network_of(places[rank]) && networks_.size() < kMaxNetworks)
            networks_.push_back({*places[rank].at(Level::site), rank_of(rank)});
}

std::optional<std::uint32_t> SiteSurvey::network_of(const Place& place) const {
    for (std::uint32_t i = 0; i < networks_.size(); ++i)
        if (networks_[i].coordinate.id == place.at(Level::site)->id) return i;
    return std::nullopt;
}

bool SiteSurvey::knows(std::size_t one, std::size_t other) const {
    return std::any_of(round_trips_.begin(), round_trips_.end(), [&](const RoundTrip& trip) {
        return (trip.one == one && trip.other == other) || (trip.one == other && trip.other == one);
    });
}

void SiteSurvey::learn(std::size_t one, std::size_t other, Nanoseconds round_trip) {
    if (one >= networks() || other >= networks() || one == other || knows(one, other)) return;
    round_trips_.push_back({static_cast<std::uint32_t>(one), static_cast<std::uint32_t>(other), round_trip});
}

std::vector<std::uint32_t> SiteSurvey::sites() const {
    std::vector<RoundTrip> measured = round_trips_;
    std::erase_if(measured, [](const RoundTrip& trip) { return trip.time >= kFar; });
    return merge_sites(static_cast<std::uint32_t>(networks_.size()), measured);
}

void SiteSurvey::apply(std::span<Place> places) const {
    const std::vector<std::uint32_t> site_of = sites();
    for (Place& place : places) {
        if (!is_network(place)) continue;
        const auto network = network_of(place);
        if (!network) continue;
        // A site is named after its first network.
        const auto first = std::find(site_of.begin(), site_of.end(), site_of[*network]) - site_of.begin();
        place.at(Level::site) = networks_[static_cast<std::size_t>(first)].coordinate;
    }
}

std::vector<std::string> SiteSurvey::explain() const {
    const std::vector<std::uint32_t> site_of = sites();
    std::vector<std::string> lines;
    for (const RoundTrip& trip : round_trips_)
        lines.push_back(std::string(name(trip.one)) + " and " + std::string(name(trip.other)) + ": " +
                        (trip.time < kFar ? std::to_string(trip.time.value / 1000) + " us" : "no answer") +
                        (site_of[trip.one] == site_of[trip.other] ? ", one site" : ", two sites"));
    return lines;
}

}  // namespace mcastcoll::topology
