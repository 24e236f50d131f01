// How to wait. With a core for every member: spin, unless the one that is waited for was last seen on this
// core. With more members than cores whoever spins keeps another from what it waits for: look a few times,
// since it may run on another core, then yield. Nothing for long: sleep in the kernel, so that an idle member
// burns nothing.
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "host/pause.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

// Turns between two calls of the caller's own progress, and looks at the clock.
constexpr std::uint32_t kSpinTurns = 64;
constexpr std::uint32_t kYieldTurns = 4;
constexpr std::uint32_t kSpinsBeforeYield = 16;
// So long without progress: yield though there are cores enough, and sleep.
constexpr Nanoseconds kSpinTime = Nanoseconds::from_ms(1);
constexpr Nanoseconds kRoomyTime = Nanoseconds::from_ms(20);
constexpr Nanoseconds kCrowdedTime = Nanoseconds::from_us(1000);
// A sleeper that was woken in vain goes back to sleep after so long.
constexpr Nanoseconds kSecondWind = Nanoseconds::from_us(100);
constexpr std::uint32_t kMostPatience = 1U << 16;
constexpr Nanoseconds kShortestSleep = Nanoseconds::from_us(500);

// Sends this thread to another of the cores that it may run on. It may come back at once.
void leave_core(int core) {
    cpu_set_t allowed, others;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    others = allowed;
    CPU_CLR(core, &others);
    if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) return;
    ::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

void Team::wait_turn(int (*meanwhile)(void*), void* argument, Nanoseconds longest) {
    // progress() has moved since the last turn: begin anew.
    if (stirred_) {
        stirred_ = false;
        turns_ = 0;
        look_soon_ = shares_core_;
        is_quiet_ = shares_core_ = false;
        quiet_since_ = {0};
        next_sleep_ = kShortestSleep;
    }
    ++turns_;
    const bool yields = crowded_ ? turns_ > kSpinsBeforeYield : is_quiet_ || shares_core_;
    if (yields) {
        ++counters_.yields;
        ::sched_yield();
    } else {
        pause();
    }
    if (turns_ % (yields || look_soon_ ? kYieldTurns : kSpinTurns) != 0) return;
    if (!crowded_) notice_core();
    look_soon_ = false;
    if (meanwhile != nullptr && meanwhile(argument) != 0) {
        quiet_since_ = {0};
        is_quiet_ = false;
        return;
    }
    const Nanoseconds now = monotonic_now();
    if (quiet_since_ == Nanoseconds{0}) {
        quiet_since_ = now;
        is_quiet_ = false;
    }
    const Nanoseconds quiet = now - quiet_since_;
    is_quiet_ = quiet > kSpinTime;
    const Nanoseconds limit = crowded_ ? kCrowdedTime : kRoomyTime;
    if (quiet < limit) return;
    sleep(std::min(longest, next_sleep_));
    next_sleep_ = std::min(Nanoseconds{2 * next_sleep_.value}, Nanoseconds::from_ms(10));
    quiet_since_ = monotonic_now() - limit + kSecondWind;
}

// There are cores enough, but the scheduler may still have put two members on one. Spinning would then last
// until it ends it, milliseconds later. And those who yield to each other stay there: they are never out of
// work for long enough to be worth a migration. So whoever finds himself there again and again goes away.
void Team::notice_core() {
    const auto core = static_cast<std::uint32_t>(::sched_getcpu()) + 1;
    std::atomic<std::uint32_t>& told = peers_[self_].left->core;
    if (told.load(std::memory_order_relaxed) != core) told.store(core, std::memory_order_relaxed);
    shares_core_ = blocker_ != self_ && peers_[blocker_].left->core.load(std::memory_order_relaxed) == core;
    if (!shares_core_) {
        shared_looks_ = 0;
    } else if (++shared_looks_ >= patience_with_sharing_) {
        shared_looks_ = 0;
        // Where it does not help, since somebody else has the other cores, it becomes rare.
        patience_with_sharing_ = std::min(2 * patience_with_sharing_, kMostPatience);
        ++counters_.moves;
        leave_core(static_cast<int>(core) - 1);
    }
}

void Team::sleep(Nanoseconds longest) {
    const std::uint32_t turn = alarm_.prepare_sleep();
    look_at_clock_ = true;
    if (!progress()) {
        ++counters_.sleeps;
        alarm_.sleep(turn, longest);
    }
    alarm_.end_sleep();
}

int Team::run(Operation& operation, int (*meanwhile)(void*), void* argument) {
    if (at_once(operation)) return 0;
    if (const int code = post(operation); code != 0) return code;
    while (!operation.done)
        if (!progress()) wait_turn(meanwhile, argument, Nanoseconds::from_ms(meanwhile != nullptr ? 1 : 10));
    return operation.error;
}

}  // namespace mcastcoll::host
