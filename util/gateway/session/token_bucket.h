// Rate limit of a gateway session in bytes per second, with a burst of 10 ms (at least 16 KiB). It may be
// overdrawn by one frame.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::gateway::session {

class TokenBucket {
  public:
    // The rate is unlimited if bytes_per_second is 0.
    explicit TokenBucket(std::uint64_t bytes_per_second = 0)
        : rate_(static_cast<std::int64_t>(bytes_per_second)),
          burst_(std::max<std::int64_t>(rate_ / 100, 16 * 1024)),
          tokens_(burst_) {}

    bool may_send(Nanoseconds now) {
        if (rate_ == 0) return true;
        fill(now);
        return tokens_ > 0;
    }
    // A negative amount returns tokens.
    void spend(std::int64_t bytes) {
        if (rate_ != 0) tokens_ -= bytes;
    }
    // When sending is allowed again; kNever if it is allowed now.
    Nanoseconds in_credit_at() const {
        if (rate_ == 0 || tokens_ > 0) return kNever;
        return filled_ + Nanoseconds{(1 - tokens_) * kSecond / rate_ + 1};
    }

  private:
    static constexpr std::int64_t kSecond = 1'000'000'000;
    void fill(Nanoseconds now) {
        const std::int64_t max = (burst_ - tokens_) * kSecond / rate_ + 1;
        const std::int64_t passed = std::clamp<std::int64_t>((now - filled_).value, 0, max);
        const std::int64_t tokens = passed * rate_ / kSecond;
        if (tokens == 0) return;
        tokens_ = std::min(burst_, tokens_ + tokens);
        filled_ = now;
    }

    std::int64_t rate_, burst_, tokens_;
    Nanoseconds filled_{0};
};

}  // namespace mcastcoll::gateway::session
