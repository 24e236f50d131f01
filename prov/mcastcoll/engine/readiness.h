// Whether the members below a member in the tree of messages listen: what a join begins with. Each tells its
// parent when its subtree does, again and again until it is told to go on: a parent that has not begun its
// join yet does not know the group.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "engine/config.h"

namespace mcastcoll::engine {

class Readiness {
  public:
    explicit Readiness(std::uint32_t children) : missing_(children) {}

    // This member listens.
    void start() { started_ = true; }
    // A child's subtree does. False: that was known.
    bool on_child(std::uint32_t child) {
        if (std::exchange(ready_[child], true)) return false;
        --missing_;
        return true;
    }
    // Children may be ready before this member is.
    bool complete() const { return started_ && missing_ == 0; }

    // To the parent, from now on, less and less often.
    void tell(Nanoseconds now) {
        due_ = true;
        tell_at_ = now + interval_;
        interval_ = std::min(Nanoseconds{2 * interval_.value}, kMostReadyInterval);
    }
    void stop() { tell_at_ = kNever; }
    Nanoseconds next_deadline() const { return tell_at_; }
    void on_timeout(Nanoseconds now) {
        if (tell_at_ <= now) tell(now);
    }
    // The parent is to be told now.
    bool due() const { return due_; }
    bool take_due() { return std::exchange(due_, false); }

  private:
    bool started_ = false, due_ = false;
    std::uint32_t missing_;
    std::array<bool, kMaxArity> ready_{};  // by child
    Nanoseconds tell_at_ = kNever, interval_ = kLeastReadyInterval;
};

}  // namespace mcastcoll::engine
