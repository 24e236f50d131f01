// The end of a timeout in milliseconds, as libfabric passes timeouts: a negative one never ends.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/types.h"

namespace mcastcoll {

class Deadline {
  public:
    explicit Deadline(int timeout_ms)
        : end_(timeout_ms < 0 ? kNever : monotonic_now() + Nanoseconds::from_ms(timeout_ms)) {}

    bool over() const { return end_ != kNever && monotonic_now() >= end_; }
    // Time left, rounded up so that a sleeper does not wake just before the deadline and spin; -1: no limit.
    int left_ms() const {
        if (end_ == kNever) return -1;
        constexpr std::int64_t kMillisecond = Nanoseconds::from_ms(1).value;
        const std::int64_t left = (end_ - monotonic_now()).value;
        return static_cast<int>(std::max<std::int64_t>((left + kMillisecond - 1) / kMillisecond, 0));
    }

  private:
    Nanoseconds end_;
};

}  // namespace mcastcoll
