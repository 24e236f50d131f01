// Alarm: poisons a team (ends its operations on all members with an error), and puts waiting members to
// sleep.
//
// Each member has a bell (layout.h) at which its waiters sleep, so a publication wakes only the members that
// wait for the publisher, however many members there are.
//
// A sleeper increments `sleepers`, forces a memory barrier on every member (membarrier), checks once more,
// and sleeps in the kernel until `turn` changes. A publisher checks `sleepers` after each publication without
// a barrier of its own, which would cost more than the whole publication. No wake-up is lost: if the
// publisher checked before the sleeper's increment, the publication precedes the sleeper's barrier, and the
// sleeper's last check sees it. If the publisher checked later, it sees the sleeper and changes `turn`, which
// the sleeper has read before. If membarrier cannot reach some member, every publication uses a barrier
// instead.
//
// Every sleep is bounded, because a sleeper also has to check that awaited members are alive.
#pragma once

#include <atomic>

#include "base/types.h"
#include "host/layout.h"

namespace mcastcoll::host {

// A sleep until the bell of the awaited member rings.
struct Nap {
    std::uint32_t awaited = 0;
    std::uint32_t turn = 0;
    Bell* bell = nullptr;
};

class Alarm {
  public:
    static constexpr std::uint32_t kNoMember = UINT32_MAX;

    Alarm(Header& header, const Areas& areas, std::uint32_t self)
        : failure_(header.failure.word),
          far_rank_(header.failure.far_rank),
          areas_(areas),
          own_(areas[self].left.bell) {}

    // Registers this process for other members' membarrier calls; false if the kernel lacks them.
    static bool enroll();
    void use_membarrier(bool all_enrolled) { fences_ = !all_enrolled; }

    // Call after each publication.
    void published() {
        if (fences_) [[unlikely]]
            std::atomic_thread_fence(std::memory_order_seq_cst);
        else
            std::atomic_signal_fence(std::memory_order_seq_cst);
        if (own_.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
            ring(own_);
    }
    // Wakes the sleepers at every bell. Call after a change for which any member may wait.
    void ring_all();
    int failure() const { return static_cast<int>(failure_.load(std::memory_order_acquire) & kErrorMask); }
    // The lost member that caused the failure, or kNoMember.
    std::uint32_t lost() const { return (failure_.load(std::memory_order_acquire) >> kErrorBits) - 1; }
    // Poisons the team. Only the first failure is stored.
    void fail(int error, std::uint32_t lost = kNoMember);
    // The rank of a lost member of another host, or kNoMember.
    std::uint32_t lost_elsewhere() const { return far_rank_.load(std::memory_order_relaxed) - 1; }
    // Stores the rank for lost_elsewhere(). Called before the team fails because of this member.
    void name_lost_elsewhere(std::uint32_t rank) { far_rank_.store(rank + 1, std::memory_order_relaxed); }

    // Counts this member as a sleeper at the awaited member's bell. Check for data once more before sleep().
    Nap prepare_sleep(std::uint32_t awaited);
    // Sleeps for at most this time, unless the awaited member published since prepare_sleep(). Returns false
    // on timeout.
    static bool sleep(const Nap& nap, Nanoseconds longest);
    static void end_sleep(const Nap& nap);

  private:
    static constexpr unsigned kErrorBits = 16;
    static constexpr std::uint32_t kErrorMask = (1U << kErrorBits) - 1;

    static void ring(Bell& bell);

    std::atomic<std::uint32_t>& failure_;
    std::atomic<std::uint32_t>& far_rank_;
    const Areas areas_;
    Bell& own_;
    bool fences_ = true;
};

}  // namespace mcastcoll::host
