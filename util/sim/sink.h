// Takes the packets of a simulated network.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mcastcoll::sim {

class Sink {
  public:
    virtual ~Sink() = default;
    virtual void on_packet(std::uint32_t endpoint, Bytes datagram) = 0;
    virtual void on_message(std::uint32_t endpoint, std::uint32_t from, Bytes message) = 0;
    virtual void on_datagram(std::uint32_t, std::uint32_t, Bytes) {}
    // A message of `from` has arrived, or its receiver has failed.
    virtual void on_sent(std::uint32_t, std::uint32_t) {}
    virtual void on_wake(std::uint32_t endpoint, std::uint32_t tag) = 0;
};

}  // namespace mcastcoll::sim
