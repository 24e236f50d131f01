// Counters of the simulated network.
#pragma once

#include <cstdint>

#include "transmission.h"

namespace mcastcoll::sim {

// Traffic through a place in one direction.
struct LinkTraffic {
    std::uint64_t packets = 0, bytes = 0, payload_bytes = 0;

    void add(const Transmission& transmission) {
        ++packets;
        bytes += transmission.size();
        payload_bytes += transmission.payload_bytes;
    }
    LinkTraffic operator-(const LinkTraffic& before) const {
        return {packets - before.packets, bytes - before.bytes, payload_bytes - before.payload_bytes};
    }
};

}  // namespace mcastcoll::sim
