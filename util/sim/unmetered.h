// Excludes allocations of the simulator itself, and of the simulated application. Defined in memory_meter.cc,
// with the counter.
#pragma once

namespace mcastcoll::sim {

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
