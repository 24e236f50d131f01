// How much memory a part of the program has: every allocation made between the construction of a MemoryMeter
// and its end counts. The program's operator new does the counting, so engine and group need to know nothing
// of it.
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

// What is allocated and freed meanwhile is the simulator's own, or stands for the application's.
class Unmetered {
  public:
    Unmetered();
    Unmetered(const Unmetered&) = delete;
    Unmetered& operator=(const Unmetered&) = delete;
    ~Unmetered();

  private:
    int meters_;
};

}  // namespace mcastcoll::sim
