// How often a sender may send packets that are not full: a burst of a few at once, then one in a while. What
// comes faster is packed together, which costs a message some microseconds at most and saves everybody a
// packet for each.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace mcastcoll::feed {

class Pacer {
  public:
    static constexpr Nanoseconds kPause = Nanoseconds::from_us(50);
    static constexpr std::int64_t kBurst = 8;

    explicit Pacer(Nanoseconds now) : full_at_(now) {}

    // Takes the permission to send now, if there is one.
    bool take(Nanoseconds now) {
        if (now < next()) return false;
        force(now);
        return true;
    }
    // Sends without asking; that counts.
    void force(Nanoseconds now) { full_at_ = std::max(full_at_, now) + kPause; }
    Nanoseconds next() const { return full_at_ - Nanoseconds{(kBurst - 1) * kPause.value}; }

  private:
    Nanoseconds full_at_;  // when the whole burst may be sent again
};

}  // namespace mcastcoll::feed
