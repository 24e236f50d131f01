#include "host/alarm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace mcastcoll::host {

bool Alarm::enroll() {
    return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void Alarm::fail(int error, std::uint32_t lost) {
    std::uint32_t none = 0;
    // kNoMember becomes 0, so that the word's initial value means no failure.
    const std::uint32_t word = (lost + 1) << kErrorBits | (static_cast<std::uint32_t>(error) & kErrorMask);
    if (failure_.compare_exchange_strong(none, word, std::memory_order_acq_rel)) ring_all();
}

void Alarm::ring(Bell& bell) {
    bell.turn.fetch_add(1, std::memory_order_acq_rel);
    ::syscall(SYS_futex, &bell.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Alarm::ring_all() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (std::uint32_t member = 0; member < areas_.members; ++member) {
        Bell& bell = areas_[member].left.bell;
        if (bell.sleepers.load(std::memory_order_relaxed) != 0) ring(bell);
    }
}

Nap Alarm::prepare_sleep(std::uint32_t awaited) {
    Bell& bell = areas_[awaited].left.bell;
    const Nap nap{awaited, bell.turn.load(std::memory_order_acquire), &bell};
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!fences_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return nap;
}

bool Alarm::sleep(const Nap& nap, Nanoseconds longest) {
    timespec limit{};
    limit.tv_sec = longest.value / 1'000'000'000;
    limit.tv_nsec = longest.value % 1'000'000'000;
    return ::syscall(SYS_futex, &nap.bell->turn, FUTEX_WAIT, nap.turn, &limit, nullptr, 0) == 0 ||
           errno != ETIMEDOUT;
}

void Alarm::end_sleep(const Nap& nap) {
    nap.bell->sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace mcastcoll::host
