#include "host/rings.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/waiting.h"

namespace mcastcoll::host {
namespace {

// A member's areas, beginning on a page of their own, so that they can lie in its own NUMA node.
std::size_t member_bytes(std::uint32_t slots, std::size_t slot_bytes) {
    return (sizeof(MemberArea) + slots * slot_bytes + 4095) / 4096 * 4096;
}

}  // namespace

Rings::Rings(Header& header, std::uint32_t self)
    : alarm(header), self_(self), slots_(header.slots), slot_bytes_(header.slot_bytes), areas_(header.size) {
    std::byte* at = reinterpret_cast<std::byte*>(&header + 1);
    for (MemberArea*& area : areas_) {
        area = reinterpret_cast<MemberArea*>(at);
        at += member_bytes(slots_, slot_bytes_);
    }
}

std::size_t Rings::bytes_for(std::uint32_t members, std::uint32_t slots, std::uint32_t slot_bytes) {
    return sizeof(Header) + members * member_bytes(slots, slot_bytes);
}

bool Rings::is_alive(std::uint32_t member) const {
    return host::is_alive(card(member).pid, card(member).start_time);
}

bool Rings::raise_watermark(Step step, std::uint64_t ring) {
    watermark_ = step;
    for (std::uint32_t member = 0; member < areas_.size(); ++member) {
        const Step left = areas_[member]->left.step.load(std::memory_order_acquire);
        if (left >= watermark_) continue;
        watermark_ = left;
        awaited_ = member;
    }
    return watermark_ + ring > step;
}

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
