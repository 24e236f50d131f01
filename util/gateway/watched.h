// A file descriptor's owner, which gets the events of the loop.
#pragma once

#include <cstdint>

namespace mcastcoll::gateway {

class Watched {
  public:
    virtual ~Watched() = default;
    virtual void on_events(std::uint32_t events) = 0;
};

}  // namespace mcastcoll::gateway
