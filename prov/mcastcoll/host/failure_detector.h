// Decides when to check that the awaited member is alive. The decision uses the clock, which is read after
// some idle polls only. Makes no system calls: Team runs the check.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::host {

class FailureDetector {
  public:
    static constexpr Nanoseconds kCheckInterval = Nanoseconds::from_ms(50);

    void on_progress() {
        state_ = State::moving;
        polls_ = 0;
    }
    // Counts an idle poll. Returns true if the caller should read the clock for is_due().
    bool on_idle() { return ++polls_ % kPollsPerLook == 0 || reads_clock_; }
    // Whether there was no progress for so long that the check is due.
    bool is_due(Nanoseconds now) {
        reads_clock_ = false;
        if (state_ == State::moving) {
            state_ = State::idle;
            idle_since_ = checked_at_ = now;
        }
        if (now - checked_at_ < kCheckInterval) return false;
        checked_at_ = now;
        return true;
    }
    // Makes the next poll read the clock, because it may be much later.
    void expect_pause() { reads_clock_ = true; }
    // When to poll again, for a caller that sleeps in between: data in shared memory cause no wake-up there.
    Nanoseconds next_deadline(Nanoseconds now) {
        expect_pause();
        if (state_ == State::moving) return now;
        const std::int64_t idle_ns = (now - idle_since_).value;
        return now + Nanoseconds{std::clamp<std::int64_t>(idle_ns / 4, 20'000, 1'000'000)};
    }

  private:
    enum class State : std::uint8_t { moving, idle };
    // Idle polls between two readings of the clock. Few, because with more processes than cores each poll is
    // followed by a yield, and polls are tens of milliseconds apart.
    static constexpr std::uint32_t kPollsPerLook = 16;

    State state_ = State::moving;
    bool reads_clock_ = false;
    std::uint32_t polls_ = 0;
    Nanoseconds idle_since_, checked_at_;
};

}  // namespace mcastcoll::host
