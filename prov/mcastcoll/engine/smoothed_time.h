// A deadline from measurements: Jacobson and Karels' smoothed mean and deviation (SIGCOMM 1988, appendix A).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::engine {

class SmoothedTime {
  public:
    explicit SmoothedTime(Nanoseconds initial) : mean_(initial.value), deviation_(initial.value / 2) {}

    void sample(Nanoseconds measured) {
        const std::int64_t value = std::max<std::int64_t>(measured.value, 0);
        if (!sampled_) {
            sampled_ = true;
            mean_ = value;
            deviation_ = value / 2;
            return;
        }
        const std::int64_t error = value - mean_;
        mean_ += error / 8;
        deviation_ += ((error < 0 ? -error : error) - deviation_) / 4;
    }

    bool sampled() const { return sampled_; }
    Nanoseconds mean() const { return {mean_}; }
    // Mean plus `deviations` deviations, clamped to the bounds; the lower bound before the first measurement.
    Nanoseconds deadline(int deviations, Nanoseconds min, Nanoseconds max) const {
        if (!sampled_) return min;
        return std::clamp(Nanoseconds{mean_ + deviations * deviation_}, min, max);
    }

  private:
    std::int64_t mean_, deviation_;
    bool sampled_ = false;
};

}  // namespace mcastcoll::engine
