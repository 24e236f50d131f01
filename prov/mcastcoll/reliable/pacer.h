// Limits packets that are not full: a burst of a few, then one per pause. Messages that come faster are
// packed together, which delays a message by some microseconds at most and saves all receivers a packet each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::reliable {

class Pacer {
  public:
    static constexpr Nanoseconds kPause = Nanoseconds::from_us(50);
    static constexpr std::int64_t kBurst = 8;

    explicit Pacer(Nanoseconds now) : full_at_(now) {}

    // Takes the permission to send now, if available.
    bool take(Nanoseconds now) {
        if (now < next()) return false;
        force(now);
        return true;
    }
    // Sends without permission, at the expense of later permissions.
    void force(Nanoseconds now) { full_at_ = std::max(full_at_, now) + kPause; }
    Nanoseconds next() const { return full_at_ - Nanoseconds{(kBurst - 1) * kPause.value}; }

  private:
    Nanoseconds full_at_;  // when the whole burst is available again
};

}  // namespace mcastcoll::reliable
