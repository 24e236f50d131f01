// Notifies the processes of a host, which are simulated elsewhere and decide when to poll the memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mcastcoll::sim {

class MemoryReaders {
  public:
    // The memory has changed for this endpoint.
    virtual void look(std::uint32_t endpoint) = 0;
    // The endpoint has read so many bytes, which occupies its processor.
    virtual void has_read(std::uint32_t endpoint, std::size_t bytes) = 0;

  protected:
    ~MemoryReaders() = default;
};

}  // namespace mcastcoll::sim
