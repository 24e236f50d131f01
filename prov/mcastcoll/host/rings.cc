#include "host/rings.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "host/waiting.h"

namespace mcastcoll::host {
namespace {

// The size of a member's area in whole pages, so that the area can be in the member's own NUMA node.
std::size_t area_bytes(std::uint32_t slots, std::size_t slot_bytes) {
    return (sizeof(MemberArea) + slots * slot_stride(slot_bytes) + 4095) / 4096 * 4096;
}

Areas areas_of(Header& header, const Shape& shape) {
    return {reinterpret_cast<std::byte*>(&header + 1), area_bytes(shape.slots, shape.slot_bytes),
            shape.members};
}

}  // namespace

Rings::Rings(Header& header, const Shape& shape, std::uint32_t self)
    : alarm(header, areas_of(header, shape), self),
      areas_(areas_of(header, shape)),
      self_(self),
      slots_(shape.slots),
      slot_bytes_(shape.slot_bytes) {}

std::size_t Rings::bytes_for(const Shape& shape) {
    return sizeof(Header) + shape.members * area_bytes(shape.slots, shape.slot_bytes);
}

bool Rings::is_alive(std::uint32_t member) const {
    return host::is_alive(record(member).pid, record(member).start_time);
}

// Stops at the first member behind, and continues from there in the next call: a waiting member checks a
// single peer, whatever the team's size.
bool Rings::raise_watermark(Step step, std::uint64_t ring) {
    if (lowest_ + ring <= step) looked_at_ = 0;
    if (looked_at_ == 0) lowest_ = step;
    for (; looked_at_ < areas_.members; ++looked_at_) {
        const Step left = areas_[looked_at_].left.step.load(std::memory_order_acquire);
        if (left + ring <= step) {
            awaited_ = looked_at_;
            return false;
        }
        lowest_ = std::min(lowest_, left);
    }
    watermark_ = std::max(watermark_, lowest_);
    looked_at_ = 0;
    return true;
}

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
