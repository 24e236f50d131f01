// How a member waits for a peer, and detects the peer's death.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::host {

// A process of this host. It may be stopped, swapped out or busy for minutes, so the kernel is queried for
// its state, never the process. Process ids are reused; the start time distinguishes the processes.
struct Process {
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;  // 0: unknown
};

Process this_process();
// Returns false once the process has ended, even before its parent reaps it.
bool is_alive(std::uint32_t pid, std::uint64_t start_time);

// Decides when to check that the awaited member is alive. The decision uses the clock, which is read after
// some idle polls only. Makes no system calls: Team runs the check.
class FailureDetector {
  public:
    static constexpr Nanoseconds kCheckInterval = Nanoseconds::from_ms(50);

    void on_progress() {
        state_ = State::moving;
        polls_ = 0;
    }
    // An idle poll. Returns true if the caller should read the clock for is_due().
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
    // Few: with more processes than cores each poll is followed by a yield, and polls are tens of
    // milliseconds apart.
    static constexpr std::uint32_t kPollsPerLook = 16;

    State state_ = State::moving;
    bool reads_clock_ = false;
    std::uint32_t polls_ = 0;
    Nanoseconds idle_since_, checked_at_;
};

// Backoff: how a member waits. With a core for every member it spins, unless the awaited member was last seen
// on the same core. With more members than cores it yields after every poll, because a spinning member may
// keep the awaited one from running. After a long time it sleeps in the kernel, so that an idle member uses
// no CPU. Makes no system calls: Team spins, yields, sleeps, and reads the clock.
class Backoff {
  public:
    void use(bool crowded) { crowded_ = crowded; }
    void on_progress() { state_ = State::progressed; }
    // How often to poll one line before doing anything else.
    int looks() const { return crowded_ || shares_core_ ? 1 : 64; }
    // One round of waiting: spin or yield, then perhaps check the core, the caller's other work, and the
    // clock.
    struct Turn {
        bool yields, looks_around;
    };
    Turn next();
    // shared: the awaited member was last seen on this core. Returns true if this member should move to
    // another core: members that yield to each other are never idle long enough for the scheduler to migrate
    // one.
    bool on_core(bool shared);
    // The caller's other work has made progress.
    void on_other_progress() { state_ = State::untimed; }
    // How long to sleep now; 0: do not sleep.
    Nanoseconds nap(Nanoseconds now);
    // rung: a member has published; otherwise the sleep timed out, and the next sleep starts at once.
    void on_woken(Nanoseconds now, bool rung);

  private:
    // progressed: there was progress since the last round; untimed: there was none, and the start of the idle
    // time is not known yet.
    enum class State : std::uint8_t { progressed, untimed, spinning, long_idle };

    Nanoseconds limit() const;

    State state_ = State::progressed;
    bool crowded_ = true;
    bool shares_core_ = false;
    bool looks_soon_ = false;  // the core was shared when the last operation ended
    std::uint32_t turns_ = 0;
    std::uint32_t shared_looks_ = 0;
    std::uint32_t checks_before_move_ = 64;  // consecutive checks with a shared core before a move
    Nanoseconds quiet_since_, next_sleep_;
};

}  // namespace mcastcoll::host
