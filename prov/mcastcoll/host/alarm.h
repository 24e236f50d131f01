// Alarm: poison for a team, and sleep for members that have waited in vain.
//
// A sleeper counts itself in `sleepers`, makes every member pass a memory barrier (membarrier), looks once
// more, and sleeps in the kernel until `turn` changes. Who publishes something looks at `sleepers`
// afterwards, without a barrier of its own, which would cost more than the whole publication. No wake-up is
// lost: had the publisher looked before the sleeper counted itself, then it has published before the
// sleeper's barrier, and the sleeper's last look sees it; had it looked after, it sees the sleeper, and
// changes `turn`, which the sleeper has read before all that. Where a member cannot be reached by membarrier,
// everybody makes a barrier at every publication instead.
//
// Every sleep is bounded: who sleeps also has to look whether those it waits for are alive.
#pragma once

#include <atomic>

#include "base/types.h"
#include "host/layout.h"

namespace mcastcoll::host {

class Alarm {
  public:
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    explicit Alarm(Header& header) : words_(header.alarm), wake_(header.wake) {}

    // Lets this process be reached by others' barriers; false where the kernel has none.
    static bool enroll();
    void use_membarrier(bool all_enrolled) { fences_ = !all_enrolled; }

    // After each publication.
    void published() {
        if (fences_) [[unlikely]]
            std::atomic_thread_fence(std::memory_order_seq_cst);
        else
            std::atomic_signal_fence(std::memory_order_seq_cst);
        if (words_.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
            wake();
    }
    int failure() const {
        return static_cast<int>(words_.failure.load(std::memory_order_acquire) & kErrorMask);
    }
    // Who is to blame for it, or kNobody.
    std::uint32_t lost() const { return (words_.failure.load(std::memory_order_acquire) >> kErrorBits) - 1; }
    // The first failure stays.
    void fail(int error, std::uint32_t lost = kNobody);

    // Counts this member as a sleeper; look once more after that.
    std::uint32_t prepare_sleep();
    // Sleeps, unless something was published since prepare_sleep(), which gave the turn, for at most so long.
    void sleep(std::uint32_t turn, Nanoseconds longest);
    void end_sleep();

  private:
    static constexpr unsigned kErrorBits = 16;
    static constexpr std::uint32_t kErrorMask = (1U << kErrorBits) - 1;

    void wake();

    AlarmWords& words_;
    WakeWord& wake_;
    bool fences_ = true;
};

}  // namespace mcastcoll::host
