// How a member waits for another, and whether that one is still there.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::host {

// Whether a process of this host is still there. It may be stopped, swapped out or busy for minutes: only the
// kernel is asked, never the process. A number alone is not enough, since numbers are used again; the start
// time tells.
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

// Backoff: how a member waits. With a core for every member it spins, unless the one that it waits for was
// last seen on its core. With more members than cores it yields after every look: whoever spins keeps another
// from what it waits for. Nothing for long: sleep in the kernel, so that an idle member burns nothing. Pure:
// Team spins, yields, sleeps, and reads the clock.
class Backoff {
  public:
    void use(bool crowded) { crowded_ = crowded; }
    void on_progress() { state_ = State::progressed; }
    // How often to look at one line before anything else is done.
    int looks() const { return crowded_ || shares_core_ ? 1 : 64; }
    // One turn of waiting: spin or yield, then perhaps look around: at the core, the caller's other work, and
    // the clock.
    struct Turn {
        bool yields, looks_around;
    };
    Turn next();
    // Whether the awaited member was last seen on this core. True when this one should go to another: those
    // who yield to each other stay where they are, since they are never out of work for long enough to be
    // worth a migration.
    bool on_core(bool shared);
    // The caller's other work has moved.
    void on_other_progress() { state_ = State::untimed; }
    // For how long to sleep now; 0 is not at all.
    Nanoseconds nap(Nanoseconds now);
    // rung: somebody has published something; otherwise the nap was over, and the next one begins at once.
    void on_woken(Nanoseconds now, bool rung);

  private:
    // progressed: something has come since the last turn; untimed: nothing has, since nobody knows when.
    enum class State : std::uint8_t { progressed, untimed, spinning, long_idle };

    Nanoseconds limit() const;

    State state_ = State::progressed;
    bool crowded_ = true;
    bool shares_core_ = false;
    bool looks_soon_ = false;  // it shared its core when the last operation ended
    std::uint32_t turns_ = 0;
    std::uint32_t shared_looks_ = 0;
    std::uint32_t patience_ = 64;  // looks in a row that find the core shared
    Nanoseconds quiet_since_, next_sleep_;
};

}  // namespace mcastcoll::host
