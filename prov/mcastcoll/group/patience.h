// How long a group waits for its members. Who is waited for long is asked every second, while anything is
// open, whether its part of the group has failed: nobody else may be left to say so. Operations that come no
// further end the group, if the user wishes so.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace mcastcoll::group {

class Patience {
  public:
    // kNever: operations may stand still for ever.
    explicit Patience(Nanoseconds stall_timeout) : stall_timeout_(stall_timeout) {}

    // An operation is open, where none was.
    void begin(Nanoseconds now) {
        moved_at_ = now;
        if (!late_.empty()) ask_at_ = now + kAskInterval;
    }
    // Operations came further.
    void moved(Nanoseconds now) { moved_at_ = now; }
    // When they have stood still for too long. Where there is an engine, which sees to its own members, it
    // knows better who is late: patience with the others is longer.
    Nanoseconds stalled_at(bool with_engine) const {
        if (stall_timeout_ == kNever) return kNever;
        return moved_at_ + stall_timeout_ + Nanoseconds{with_engine ? stall_timeout_.value / 2 : 0};
    }

    // This member has been waited for long just now: it is to be asked at once.
    void add_late(std::uint32_t rank, Nanoseconds now) {
        late_.push_back(rank);
        ask_at_ = now;
    }
    const std::vector<std::uint32_t>& late() const { return late_; }
    Nanoseconds ask_at() const { return ask_at_; }
    // They are asked now, and again if they may be waited for longer. The number of the question.
    std::uint32_t ask(bool again, Nanoseconds now) {
        ask_at_ = again ? now + kAskInterval : kNever;
        return asked_++;
    }

  private:
    static constexpr Nanoseconds kAskInterval = Nanoseconds::from_ms(1000);

    const Nanoseconds stall_timeout_;
    Nanoseconds moved_at_{};  // when an operation last began or came further
    std::vector<std::uint32_t> late_;
    Nanoseconds ask_at_ = kNever;
    std::uint32_t asked_ = 0;
};

}  // namespace mcastcoll::group
