#include "host/alarm.h"

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
    // Nobody is 0 here, so that the word's initial value is none at all.
    const std::uint32_t word = (lost + 1) << kErrorBits | (static_cast<std::uint32_t>(error) & kErrorMask);
    words_.failure.compare_exchange_strong(none, word, std::memory_order_acq_rel);
    wake();
}

void Alarm::wake() {
    wake_.turn.fetch_add(1, std::memory_order_acq_rel);
    ::syscall(SYS_futex, &wake_.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t Alarm::prepare_sleep() {
    const std::uint32_t turn = wake_.turn.load(std::memory_order_acquire);
    words_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!fences_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return turn;
}

void Alarm::sleep(std::uint32_t turn, Nanoseconds longest) {
    timespec limit{};
    limit.tv_sec = longest.value / 1'000'000'000;
    limit.tv_nsec = longest.value % 1'000'000'000;
    ::syscall(SYS_futex, &wake_.turn, FUTEX_WAIT, turn, &limit, nullptr, 0);
}

void Alarm::end_sleep() {
    words_.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace mcastcoll::host
