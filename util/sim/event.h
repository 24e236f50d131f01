// A future event. Events are ordered by time and, at the same time, in order of scheduling. An event is 32
// bytes and can stand for a run of consecutive endpoints with the same event at the same moment.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "transmission.h"

namespace mcastcoll::sim {

struct Event {
    enum class What : std::uint8_t {
        enter,   // a transmission reaches the switch of site `first`
        arrive,  // a transmission reaches the hosts of endpoints [first, first + count)
        serve,   // host `first` takes the next transmission out of its inbox
        wake,    // a timer of endpoints [first, first + count); tag has the reason
    };
    Nanoseconds at{};
    std::uint64_t order : 56;
    std::uint64_t what : 4, tag : 4;
    std::uint32_t first = 0, count = 1;
    Transmission* transmission = nullptr;

    bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
};
static_assert(sizeof(Event) == 32);

}  // namespace mcastcoll::sim
