// Members that have once been waited for long, beyond the engine's, and when they are asked whether their
// part of the group has failed: while anything is open, every second, because nobody else may be left to say
// so.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace mcastcoll::group {

class LateMembers {
  public:
    // It has been waited for long just now: to be asked at once.
    void add(std::uint32_t rank, Nanoseconds now) {
        ranks_.push_back(rank);
        ask_at_ = now;
    }
    // An operation is open again, where none was.
    void resume(Nanoseconds now) {
        if (!ranks_.empty()) ask_at_ = now + kAskInterval;
    }
    Nanoseconds next_deadline() const { return ask_at_; }
    // They are asked now, and again if they may be waited for longer. The number of the question.
    std::uint32_t ask(bool again, Nanoseconds now) {
        ask_at_ = again ? now + kAskInterval : kNever;
        return asked_++;
    }
    const std::vector<std::uint32_t>& ranks() const { return ranks_; }

  private:
    static constexpr Nanoseconds kAskInterval = Nanoseconds::from_ms(1000);

    std::vector<std::uint32_t> ranks_;
    Nanoseconds ask_at_ = kNever;
    std::uint32_t asked_ = 0;
};

}  // namespace mcastcoll::group
