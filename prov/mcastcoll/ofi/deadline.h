// The time left of a timeout in milliseconds as libfabric counts them, where negative is forever.
#pragma once

#include <algorithm>
#include <chrono>

namespace mcastcoll::ofi {

class Deadline {
  public:
    explicit Deadline(int timeout_ms)
        : forever_(timeout_ms < 0), end_(Clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0))) {}

    bool over() const { return !forever_ && Clock::now() >= end_; }
    // Rounded up, so that nobody wakes too early and spins; -1 is forever.
    int left_ms() const {
        if (forever_) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
        return static_cast<int>(std::max<long long>(left, 0));
    }

  private:
    using Clock = std::chrono::steady_clock;
    bool forever_;
    Clock::time_point end_;
};

}  // namespace mcastcoll::ofi
