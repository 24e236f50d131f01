#include "topology/site_survey.h"

#include <algorithm>
#include <iterator>

namespace mcastcoll::topology {
namespace {

// The site was taken from the segment: nobody has named it.
bool is_network(const Place& place) {
    const auto& site = place.at(Level::site);
    const auto& segment = place.at(Level::segment);
    return site && segment && site->id == segment->id;
}

}  // namespace

SiteSurvey::SiteSurvey(std::span<const Place> places) {
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        if (is_network(places[rank]) && !network_of(places[rank]) && networks_.size() < kMostNetworks)
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
    std::vector<RoundTrip> measured;
    std::copy_if(round_trips_.begin(), round_trips_.end(), std::back_inserter(measured),
                 [](const RoundTrip& trip) { return trip.time < kFar; });
    return merge_sites(static_cast<std::uint32_t>(networks_.size()), measured);
}

void SiteSurvey::apply(std::span<Place> places) const {
    const std::vector<std::uint32_t> site_of = sites();
    for (Place& place : places) {
        if (!is_network(place)) continue;
        const auto network = network_of(place);
        if (!network) continue;
        // A site is called after its first network.
        const auto first = std::find(site_of.begin(), site_of.end(), site_of[*network]) - site_of.begin();
        const Coordinate& site = networks_[static_cast<std::size_t>(first)].coordinate;
        place.set(Level::site, site.id, site.name.view());
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
