// Measures the memory of a part of the program: every allocation between the construction of a MemoryMeter
// and its destruction counts. The program's operator new counts, so engine and group need no changes.
#pragma once

#include <cstdint>

namespace mcastcoll::sim {

class MemoryMeter {
  public:
    MemoryMeter();
    MemoryMeter(const MemoryMeter&) = delete;
    MemoryMeter& operator=(const MemoryMeter&) = delete;
    ~MemoryMeter();
    // Bytes allocated minus bytes freed since construction.
    std::int64_t grown() const;

  private:
    std::int64_t before_;
};

}  // namespace mcastcoll::sim
