// Rings: one member's access to the lines and slots of the team (layout.h), in this process's mapping. A
// writer checks that every member has left the previous use of a place; a reader checks the flag. No function
// blocks: awaited() is the member for which the last check failed.
#pragma once

#include <errno.h>

#include <atomic>

#include "host/alarm.h"
#include "host/layout.h"

namespace mcastcoll::host {

// Pauses between two polls of the same word.
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
    // Size of the shared memory without the table.
    static std::size_t bytes_for(const Shape& shape);

    std::uint32_t slots() const { return slots_; }
    std::size_t slot_bytes() const { return slot_bytes_; }
    int failure() const { return alarm.failure(); }
    // Poisons the team, because members have posted different operations in one step.
    void mismatch() { alarm.fail(EMSGSIZE); }

    MemberRecord& record(std::uint32_t member) const { return areas_[member].record; }
    bool is_alive(std::uint32_t member) const;
    // The core on which the member last waited, plus one.
    std::atomic<std::uint32_t>& core(std::uint32_t member) const { return areas_[member].left.core; }
    // All slots of a member, contiguous.
    std::byte* slots_of(std::uint32_t member) const {
        return reinterpret_cast<std::byte*>(&areas_[member] + 1);
    }

    Line& line(std::uint32_t member, Step step) const {
        // Rotated by the member: otherwise the lines of one step would be whole pages apart, in the same
        // cache set.
        return areas_[member].lines[(step + member) % kLines];
    }
    std::byte* slot(std::uint32_t member, Step step) const {
        // Rotated by the member, as lines are.
        return slots_of(member) + (step + member) % slots_ * slot_stride(slot_bytes_);
    }
    // The data of a step's message.
    std::byte* place(std::uint32_t member, Step step, bool in_line) const {
        return in_line ? line(member, step).payload.data() : slot(member, step);
    }

    // Whether all members have left the previous use of this step's line or slot.
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
    // Announces that this member is in the first step.
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
    // Does the same, and poisons the team if the message's length is not `extent`.
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
    // Records that every member was seen in this step, and so has left earlier steps.
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
    Step watermark_ = 1;  // every member has left the steps before this one
    // State of the search for a higher watermark: members before looked_at_ have left the steps before
    // lowest_.
    std::uint32_t looked_at_ = 0;
    Step lowest_ = 0;
    std::uint32_t awaited_ = 0;
};

}  // namespace mcastcoll::host
