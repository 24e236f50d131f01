// Round trip of a NAK to the preceding rank and the answer, the unit of most deadlines.
//
// Measured by pings: the first right after the join, further pings with later operations while a shorter
// round trip would shorten a deadline, 16 at most. The shortest round trip counts. All processes are busy
// while a job starts, so a single ping could measure many times the round trip, and every loss would then
// cost 1.5 times the measured value. Answers to NAKs for holes keep the value up to date.
#pragma once

#include <algorithm>

#include "engine/smoothed_time.h"

namespace mcastcoll::engine {

class RoundTrip {
  public:
    // initial: value before the first measurement. short_enough: a shorter round trip shortens no deadline.
    // too_long: above this value, the peer most likely slept.
    RoundTrip(Nanoseconds initial, Nanoseconds short_enough, Nanoseconds too_long)
        : short_enough_(short_enough), too_long_(too_long), mean_(initial) {}

    Nanoseconds mean() const { return mean_.mean(); }

    // Requests a ping.
    void want_ping() { ping_due_ = true; }
    // Requests a ping if a shorter round trip would shorten a deadline.
    void want_shorter() {
        ping_due_ |= pinged_at_ == kNever && pings_ < kMaxPings && shortest_ > short_enough_;
    }
    bool ping_due() const { return ping_due_; }
    void on_ping(Nanoseconds now) {
        ping_due_ = false;
        pinged_at_ = now;
        ++pings_;
    }
    // The answer to the ping sent at `pinged_at` has arrived. Returns false, without effect, if no such ping
    // is pending.
    bool on_pong(Nanoseconds pinged_at, Nanoseconds now) {
        if (pinged_at_ == kNever || pinged_at != pinged_at_) return false;
        shortest_ = std::min(shortest_, now - pinged_at_);
        pinged_at_ = kNever;
        // A process may sleep or compute after the join before it reads its queues: ping again.
        const bool overslept = shortest_ > too_long_ && pings_ < kMaxPings;
        ping_due_ |= overslept;
        if (overslept || (mean_.sampled() && shortest_ >= mean())) return true;
        mean_ = SmoothedTime(shortest_);
        mean_.sample(shortest_);
        return true;
    }
    // A NAK was answered. The supplier may have queued the NAK, so the sample is limited to twice the mean.
    void on_answer(Nanoseconds took) { mean_.sample(std::min(took, Nanoseconds{2 * mean().value})); }

  private:
    static constexpr unsigned kMaxPings = 16;
    Nanoseconds short_enough_, too_long_;
    SmoothedTime mean_;
    Nanoseconds shortest_ = kNever, pinged_at_ = kNever;
    unsigned pings_ = 0;
    bool ping_due_ = false;
};

}  // namespace mcastcoll::engine
