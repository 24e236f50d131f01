// How much memory an engine has: every allocation made between the construction of a MemoryMeter and its end
// counts. The program's operator new does the counting, so the engine needs to know nothing of it.
#pragma once

#include <cstdint>

namespace mcastcoll::sim {

class MemoryMeter {
  public:
    MemoryMeter();
    MemoryMeter(const MemoryMeter&) = delete;
    MemoryMeter& operator=(const MemoryMeter&) = delete;
    ~MemoryMeter();
    // Bytes allocated less bytes freed since the construction.
    std::int64_t grown() const;

  private:
    std::int64_t before_;
};

}  // namespace mcastcoll::sim
