// Rings: the lines and slots of all members, in this process's addresses, as one member writes and reads them
// (layout.h). Who writes asks whether everybody has left the place's last use, who reads looks at the flag.
// Nobody waits in here: awaited() is whom the last look was in vain for.
#pragma once

#include <errno.h>

#include <atomic>

#include "base/types.h"
#include "host/layout.h"

namespace mcastcoll::host {

// Alarm: poison for a team, and sleep for members that have waited in vain.
//
// Every member has a bell (layout.h), at which those sleep who wait for it: however many members there are,
// who publishes wakes nobody who waits for another.
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
// Until whom a member sleeps.
struct Nap {
    std::uint32_t awaited = 0;
    std::uint32_t turn = 0;
    Bell* bell = nullptr;
};

class Alarm {
  public:
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    Alarm(Header& header, const Areas& areas, std::uint32_t self)
        : failure_(header.failure.word),
          far_rank_(header.failure.far_rank),
          areas_(areas),
          own_(areas[self].left.bell) {}

    // Lets this process be reached by others' barriers; false where the kernel has none.
    static bool enroll();
    void use_membarrier(bool all_enrolled) { fences_ = !all_enrolled; }

    // After each publication.
    void published() {
        if (fences_) [[unlikely]]
            std::atomic_thread_fence(std::memory_order_seq_cst);
        else
            std::atomic_signal_fence(std::memory_order_seq_cst);
        if (own_.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
            ring(own_);
    }
    // After what others have waited for than those who wait for this member.
    void ring_all();
    int failure() const { return static_cast<int>(failure_.load(std::memory_order_acquire) & kErrorMask); }
    // Who is to blame for it, or kNobody.
    std::uint32_t lost() const { return (failure_.load(std::memory_order_acquire) >> kErrorBits) - 1; }
    // The first failure stays.
    void fail(int error, std::uint32_t lost = kNobody);
    // The rank of a lost member of another host, or kNobody. It is named before the team fails because of it.
    std::uint32_t lost_elsewhere() const { return far_rank_.load(std::memory_order_relaxed) - 1; }
    void name_lost_elsewhere(std::uint32_t rank) { far_rank_.store(rank + 1, std::memory_order_relaxed); }

    // Counts this member among those who sleep until another publishes; look once more after that.
    Nap prepare_sleep(std::uint32_t awaited);
    // Sleeps, unless something was published since prepare_sleep(), for at most so long. False when that is
    // over.
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

// Between two looks at the same word.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

class Rings {
  public:
    Alarm alarm;

    Rings(Header& header, const Shape& shape, std::uint32_t self);
    // Of the shared memory.
    static std::size_t bytes_for(const Shape& shape);

    std::uint32_t slots() const { return slots_; }
    std::size_t slot_bytes() const { return slot_bytes_; }
    int failure() const { return alarm.failure(); }
    // Members have posted different things under one number.
    void mismatch() { alarm.fail(EMSGSIZE); }

    Card& card(std::uint32_t member) const { return areas_[member].card; }
    bool is_alive(std::uint32_t member) const;
    // One more than the core that the member has last waited on.
    std::atomic<std::uint32_t>& core(std::uint32_t member) const { return areas_[member].left.core; }
    // All slots of a member, one after the other.
    std::byte* slots_of(std::uint32_t member) const {
        return reinterpret_cast<std::byte*>(&areas_[member] + 1);
    }

    Line& line(std::uint32_t member, Step step) const {
        // Turned by the member: the lines of one step would else lie a whole number of pages apart, in one
        // set of the cache.
        return areas_[member].lines[(step + member) % kLines];
    }
    std::byte* slot(std::uint32_t member, Step step) const {
        // Turned by the member, as lines are.
        return slots_of(member) + (step + member) % slots_ * slot_stride(slot_bytes_);
    }
    // Where a step's message lies.
    std::byte* place(std::uint32_t member, Step step, bool in_line) const {
        return in_line ? line(member, step).payload.data() : slot(member, step);
    }

    // Whether everybody has left what was a ring of lines, or slots, before.
    bool may_write_line(Step step) { return may_use(step, kLines); }
    bool may_write_slot(Step step) { return may_use(step, slots_); }
    bool may_write(Step step, bool in_line) { return may_use(step, in_line ? kLines : slots_); }
    void publish(Step step, Kind kind, bool final, std::uint64_t count) {
        line(self_, step)
            .word.store(Word::of(step, static_cast<unsigned>(kind), final, count), std::memory_order_release);
        alarm.published();
    }
    void publish(Step step, Kind kind, bool final, std::uint64_t count, std::uint64_t extent) {
        line(self_, step).extent.store(extent, std::memory_order_relaxed);
        publish(step, kind, final, count);
    }
    // The first step is not left yet.
    void enter() { areas_[self_].left.step.store(watermark_, std::memory_order_relaxed); }
    void leave(Step step) {
        areas_[self_].left.step.store(step + 1, std::memory_order_release);
        alarm.published();
    }

    // The word that a member has published for a step, or 0.
    std::uint64_t look(std::uint32_t member, Step step, Kind kind) {
        const std::uint64_t word = line(member, step).word.load(std::memory_order_acquire);
        if (!Word::is_of(word, step)) {
            awaited_ = member;
            return 0;
        }
        if (Word::kind(word) != static_cast<unsigned>(kind)) [[unlikely]]
            return mismatch(), 0;
        return word;
    }
    // The same of a message whose length everybody knows.
    std::uint64_t look(std::uint32_t member, Step step, Kind kind, std::uint64_t extent) {
        const std::uint64_t word = look(member, step, kind);
        if (word == 0 || line(member, step).extent.load(std::memory_order_relaxed) == extent) return word;
        return mismatch(), 0;
    }
    bool has_left(std::uint32_t member, Step step) {
        if (areas_[member].left.step.load(std::memory_order_acquire) > step) return true;
        awaited_ = member;
        return false;
    }
    // Everybody has been seen in this step: who is in it has left all before.
    void all_are_in(Step step) {
        if (watermark_ < step) watermark_ = step;
    }
    void await(std::uint32_t member) { awaited_ = member; }
    std::uint32_t awaited() const { return awaited_; }

  private:
    bool may_use(Step step, std::uint64_t ring) {
        if (watermark_ + ring > step) [[likely]]
            return true;
        return raise_watermark(step, ring);
    }
    bool raise_watermark(Step step, std::uint64_t ring);

    const Areas areas_;
    const std::uint32_t self_, slots_;
    const std::size_t slot_bytes_;
    Step watermark_ = 1;  // everybody has left all steps before
    // Looking for a higher one: members before this one have left all steps before that.
    std::uint32_t looked_at_ = 0;
    Step lowest_ = 0;
    std::uint32_t awaited_ = 0;
};

}  // namespace mcastcoll::host
