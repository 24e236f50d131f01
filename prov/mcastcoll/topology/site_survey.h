// How rank 0 makes sites of networks at a join. A process knows its subnet, which is its segment, and takes
// it for its site, too, unless the user has named that. One member of each such network measures round trips
// to those of the others, and networks that are near each other become one site of several segments. Pure:
// says who is to measure what, is told the times, and rewrites the places.
//
// Networks less than a millisecond apart are one site. Campuses are wider: when the round trips above that
// fall in two classes, ten times apart, and the nearer ones are below ten milliseconds, the nearer ones too
// are within a site. Nearness is passed on: who is near one network of a site belongs to it.
#pragma once

#include <span>

#include "topology/place.h"

namespace mcastcoll::topology {

// Numbers of two networks (or hosts, to find out whether a network is more than one site), and the shortest
// round trip seen between them.
struct RoundTrip {
    std::uint32_t one = 0, other = 0;
    Nanoseconds time{};
};

// Sites of `count` networks, dense numbers in order of their first ones. What was not measured is not near;
// numbers beyond `count` are ignored.
std::vector<std::uint32_t> merge_sites(std::uint32_t count, std::span<const RoundTrip> round_trips);

class SiteSurvey {
  public:
    // Networks beyond the first so many stay sites of their own.
    static constexpr std::size_t kMostNetworks = 16;

    // The round trip of a pair that gave no answer in time.
    static constexpr Nanoseconds kFar = Nanoseconds::from_ms(60'000);

    // Of a group's members, in rank order.
    explicit SiteSurvey(std::span<const Place> places);

    std::size_t networks() const { return networks_.size(); }
    // The first member that is there.
    Rank representative(std::size_t network) const { return networks_[network].first; }
    // The same for the same network in every group.
    std::uint64_t identity(std::size_t network) const { return networks_[network].coordinate.id; }
    std::string_view name(std::size_t network) const { return networks_[network].coordinate.name.view(); }

    bool knows(std::size_t one, std::size_t other) const;
    void learn(std::size_t one, std::size_t other, Nanoseconds round_trip);

    // Puts the sites into the places that this was made from. What was not measured stays apart.
    void apply(std::span<Place> places) const;
    // "10.0.0.0/24 and 10.0.1.0/24: 120 us, one site", a line for each pair that was measured.
    std::vector<std::string> explain() const;

  private:
    struct Network {
        Coordinate coordinate;
        Rank first{};
    };
    std::optional<std::uint32_t> network_of(const Place& place) const;
    std::vector<std::uint32_t> sites() const;

    std::vector<Network> networks_;
    std::vector<RoundTrip> round_trips_;
};

}  // namespace mcastcoll::topology
