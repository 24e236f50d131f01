// The links between sites. Every link has two directions, each with a latency, a time per byte and a queue of
// waiting packets; no packet is dropped, since only reliable messages cross. Either every site has a link to
// site 0, and a packet from site 1 to site 2 crosses two links, or each two sites have a link.
//
// A link is cut-through like the switches: the time per byte delays a packet's last byte, not its first. A
// link must not be faster than a host's adapter, since the link would run out of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "link_traffic.h"
#include "model.h"
#include "transmission.h"

namespace mcastcoll::sim {

class WanLinks {
  public:
    WanLinks(std::uint32_t sites, const Wan& wan)
        : wan_(wan), sites_(sites), free_(std::size_t{sites} * sites), link_traffic_(free_.size()) {}

    // The next site of a packet at site `at` with destination `to`.
    std::uint32_t next(std::uint32_t at, std::uint32_t to) const { return wan_.mesh || at == 0 ? to : 0; }
    // Moves a packet across one link and returns when the packet enters the next switch. `onward` is the time
    // that its bytes take on the next wire, a host's or another link.
    Nanoseconds carry(std::uint32_t from, std::uint32_t to, const Transmission& transmission, Nanoseconds now,
                      Nanoseconds onward) {
        const std::size_t link = std::size_t{from} * sites_ + to;
        const Nanoseconds begin = std::max(free_[link], now);
        free_[link] = begin + wire_time(transmission.size());
        link_traffic_[link].add(transmission);
        return std::max(begin, free_[link] - onward) + wan_.latency;
    }
    Nanoseconds wire_time(std::size_t bytes) const { return time_of(bytes, wan_.ns_per_byte); }
    const std::vector<LinkTraffic>& link_traffic() const { return link_traffic_; }

  private:
    const Wan wan_;
    const std::uint32_t sites_;
    std::vector<Nanoseconds> free_;  // by link and direction
    std::vector<LinkTraffic> link_traffic_;
};

}  // namespace mcastcoll::sim
