// A deadline from measurements: the third largest of the last 16 times, which nearly always suffices. A mean
// with deviations would grow with the very repairs that it times: a late repair makes the whole group late
// for the next operation, and such times would then count as usual.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/types.h"

namespace mcastcoll::engine {

class RecentTimes {
  public:
    void sample(Nanoseconds measured) {
        const Nanoseconds value = std::max(measured, Nanoseconds{});
        const Nanoseconds oldest = std::exchange(recent_[next_ % kKept], value);
        // Replaces the oldest value, or appends, and sorts the new value into place.
        std::size_t at = next_ < kKept ? next_ : 0;
        if (next_++ >= kKept)
            while (sorted_[at] < oldest) ++at;
        const std::size_t count = std::min<std::size_t>(next_, kKept);
        for (; at + 1 < count && sorted_[at + 1] < value; ++at) sorted_[at] = sorted_[at + 1];
        for (; at > 0 && value < sorted_[at - 1]; --at) sorted_[at] = sorted_[at - 1];
        sorted_[at] = value;
        const std::size_t rank = count > kIgnored ? count - 1 - kIgnored : 0;
        usual_ = sorted_[rank];
        quick_ = sorted_[std::min(rank, count / 4)];
    }

    bool sampled() const { return next_ > 0; }
    // Upper bound of the fastest quarter: the usual time without repairs.
    Nanoseconds quick() const { return quick_; }
    // A quarter more than the usual time, clamped to the bounds; the lower bound before the first
    // measurement.
    Nanoseconds deadline(Nanoseconds min, Nanoseconds max) const {
        return std::clamp(Nanoseconds{usual_.value + usual_.value / 4}, min, max);
    }

  private:
    static constexpr std::size_t kKept = 16, kIgnored = 2;
    std::array<Nanoseconds, kKept> recent_{}, sorted_{};
    std::size_t next_ = 0;
    Nanoseconds usual_{}, quick_{};
};

}  // namespace mcastcoll::engine
