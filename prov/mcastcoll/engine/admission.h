// The join, up and down the gather tree: a member whose subtree listens tells its parent (ready), and rank 0
// then opens the first election about the multicast, whose verdict is the end of the join. Also the pings
// that measure how far the members are from each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "engine/core.h"

namespace mcastcoll::engine {

// Whether the members below a member in the tree of messages listen: what a join begins with. Each tells its
// parent when its subtree does, again and again until it is told to go on: a parent that has not begun its
// join yet does not know the group.
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

class Admission {
  public:
    explicit Admission(Core& core) : core_(core), readiness_(core.children.count) {}

    // This member listens; or a child's subtree does. True: all do, and rank 0 is to open the election.
    bool start();
    bool on_ready(const wire::Header& header);
    void on_ping(const wire::Header& header) { pongs_.push(header); }
    void on_pong(const wire::Header& header);
    Nanoseconds next_deadline() const {
        return core_.phase == Phase::forming ? readiness_.next_deadline() : kNever;
    }
    void on_timeout() {
        if (core_.phase == Phase::forming) readiness_.on_timeout(core_.now);
    }
    bool next_message(Effect& effect) { return has_message() && make_message(effect); }

  private:
    bool has_message() const { return readiness_.due() || core_.round_trip.ping_due() || !pongs_.empty(); }
    bool make_message(Effect& effect);
    bool check_ready();
    Rank member_before() const;

    Core& core_;
    Readiness readiness_;
    Ring<wire::Header> pongs_{16};
};

}  // namespace mcastcoll::engine
