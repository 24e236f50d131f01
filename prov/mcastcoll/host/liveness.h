// Whether a process of this host is still there. It may be stopped, swapped out or busy for minutes: only the
// kernel is asked, never the process. A number alone is not enough, since numbers are used again; the start
// time tells.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::host {

struct Process {
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;  // 0 is unknown
};

Process this_process();
// False once the process has ended, even while its parent has not asked for its status.
bool is_alive(std::uint32_t pid, std::uint64_t start_time);

// When to ask whether the member that is waited for is alive. By the clock, which is read after a few polls
// in vain only. Pure: who asks, and whom, is Team's business.
class FailureDetector {
  public:
    static constexpr Nanoseconds kPatience = Nanoseconds::from_ms(50);

    void on_progress() {
        state_ = State::moving;
        polls_ = 0;
    }
    // A poll in vain. True when the caller should read the clock, for is_due().
    bool on_idle() { return ++polls_ % kPollsPerLook == 0 || reads_clock_; }
    // Whether nothing has come for so long that somebody has to look.
    bool is_due(Nanoseconds now) {
        reads_clock_ = false;
        if (state_ == State::moving) {
            state_ = State::idle;
            idle_since_ = checked_at_ = now;
        }
        if (now - checked_at_ < kPatience) return false;
        checked_at_ = now;
        return true;
    }
    // Much time may pass until the next poll: that one reads the clock.
    void expect_pause() { reads_clock_ = true; }
    // When to poll again, for who sleeps meanwhile: nobody rings when something has come through memory.
    Nanoseconds next_deadline(Nanoseconds now) {
        expect_pause();
        if (state_ == State::moving) return now;
        const std::int64_t idle_ns = (now - idle_since_).value;
        return now + Nanoseconds{std::clamp<std::int64_t>(idle_ns / 4, 20'000, 1'000'000)};
    }

  private:
    enum class State : std::uint8_t { moving, idle };
    // Few: where more processes run than there are cores, and each poll is followed by a yield, polls are
    // tens of milliseconds apart.
    static constexpr std::uint32_t kPollsPerLook = 16;

    State state_ = State::moving;
    bool reads_clock_ = false;
    std::uint32_t polls_ = 0;
    Nanoseconds idle_since_, checked_at_;
};

}  // namespace mcastcoll::host
