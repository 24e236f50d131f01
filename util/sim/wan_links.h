// The links between sites. Every link has two directions, each with a latency, a time per byte and a queue in
// which packets wait; none is dropped, since only reliable messages cross. Either all sites hang on site 0,
// and what goes from site 1 to site 2 crosses two links, or each two sites have a link of their own.
//
// A link cuts through like the switches: a packet's last byte is what comes late, not its first. No link may
// be faster than a host's adapter, or it would have to wait for bytes.
//
// What crosses is counted here, by link and direction: the figure by which hierarchy is judged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parcel.h"

namespace mcastcoll::sim {

inline Nanoseconds time_of(std::size_t bytes, double ns_per_byte) {
    return {static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte)};
}

struct Wan {
    Nanoseconds latency = Nanoseconds::from_ms(5);
    double ns_per_byte = 8;  // 1 Gbit/s
    bool mesh = false;
};

// What went through one place in one direction.
struct Crossed {
    std::uint64_t packets = 0, bytes = 0, payload_bytes = 0;

    void add(const Parcel& parcel) {
        ++packets;
        bytes += parcel.size();
        payload_bytes += parcel.payload_bytes;
    }
    Crossed operator-(const Crossed& other) const {
        return {packets - other.packets, bytes - other.bytes, payload_bytes - other.payload_bytes};
    }
    bool operator==(const Crossed&) const = default;
};

class WanLinks {
  public:
    WanLinks(std::uint32_t sites, const Wan& wan)
        : wan_(wan), sites_(sites), directions_(std::size_t{sites} * sites) {}

    std::uint32_t sites() const { return sites_; }
    bool linked(std::uint32_t from, std::uint32_t to) const {
        return from != to && (wan_.mesh || from == 0 || to == 0);
    }
    // Where a packet at site `at` that is for site `to` goes next.
    std::uint32_t next(std::uint32_t at, std::uint32_t to) const { return linked(at, to) ? to : 0; }
    // Takes a packet across one link; when it enters the switch there. onward: the time that its bytes take
    // on the next wire, if it is a host's.
    Nanoseconds cross(std::uint32_t from, std::uint32_t to, const Parcel& parcel, Nanoseconds now,
                      Nanoseconds onward) {
        Direction& direction = directions_[std::size_t{from} * sites_ + to];
        const Nanoseconds begin = std::max(direction.free, now);
        direction.free = begin + wire_time(parcel.size());
        direction.crossed.add(parcel);
        return std::max(begin, direction.free - onward) + wan_.latency;
    }
    Nanoseconds wire_time(std::size_t bytes) const { return time_of(bytes, wan_.ns_per_byte); }
    const Crossed& crossed(std::uint32_t from, std::uint32_t to) const {
        return directions_[std::size_t{from} * sites_ + to].crossed;
    }

  private:
    struct Direction {
        Nanoseconds free{};
        Crossed crossed;
    };
    const Wan wan_;
    const std::uint32_t sites_;
    std::vector<Direction> directions_;
};

}  // namespace mcastcoll::sim
