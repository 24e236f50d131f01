// Merges networks into sites during a join, on rank 0. A process uses its subnet (its network) as its segment
// and, unless the user has named a site, as its site. One member per network measures round trips to a member
// of each other network, and nearby networks become one site of several segments. This class has no socket
// and no clock: it selects the pairs to measure, gets the times from its caller, and rewrites the places.
//
// Networks with a round trip below one millisecond are one site. Campuses are wider: if the longer round
// trips fall into two classes, a factor of ten apart, and the shorter class is below ten milliseconds, then
// networks of the shorter class are one site, too. A network near one network of a site belongs to the site.
#pragma once

#include <span>

#include "topology/place.h"

namespace mcastcoll::topology {

// Numbers of two networks (or hosts, to find out whether a network is more than one site), and the shortest
// measured round trip between them.
struct RoundTrip {
    std::uint32_t one = 0, other = 0;
    Nanoseconds time{};
};

// Returns the sites of `count` networks, dense numbers in the order of their first networks. Unmeasured pairs
// count as far apart; numbers from `count` on are ignored.
std::vector<std::uint32_t> merge_sites(std::uint32_t count, std::span<const RoundTrip> round_trips);

class SiteSurvey {
  public:
    // Networks beyond this number remain sites of their own.
    static constexpr std::size_t kMaxNetworks = 16;

    // The round trip of a pair without a timely answer.
    static constexpr Nanoseconds kFar = Nanoseconds::from_ms(60'000);

    // Places of a group's members, in rank order.
    explicit SiteSurvey(std::span<const Place> places);

    std::size_t networks() const { return networks_.size(); }
    // The first member in this network.
    Rank representative(std::size_t network) const { return networks_[network].first; }
    // Identifies the network: the number is the same in every group.
    std::uint64_t identity(std::size_t network) const { return networks_[network].coordinate.id; }
    std::string_view name(std::size_t network) const { return networks_[network].coordinate.name.view(); }

    bool knows(std::size_t one, std::size_t other) const;
    void learn(std::size_t one, std::size_t other, Nanoseconds round_trip);

    // Writes the sites into the places given to the constructor. Unmeasured networks stay apart.
    void apply(std::span<Place> places) const;
    // One line per measured pair, like "10.0.0.0/24 and 10.0.1.0/24: 120 us, one site".
    std::vector<std::string> explain() const;

  private:
    struct Network {
        Coordinate coordinate;
        Rank first{};
    };
    // The network of a member at this place, or nothing if the member's network is not merged.
    std::optional<std::uint32_t> network_of(const Place& place) const;
    std::vector<std::uint32_t> sites() const;

    std::vector<Network> networks_;
    std::vector<RoundTrip> round_trips_;
};

}  // namespace mcastcoll::topology
