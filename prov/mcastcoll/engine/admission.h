// The join, up and down the gather tree: a member whose subtree listens tells its parent (ready), and rank 0
// then opens the first election about the multicast, whose verdict is the end of the join. Also the pings
// that measure how far the members are from each other.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

// How often a member says that it is ready: less and less.
inline constexpr Nanoseconds kLeastReadyInterval = Nanoseconds::from_ms(5);
inline constexpr Nanoseconds kMostReadyInterval = Nanoseconds::from_ms(500);

// Each member tells its parent when its subtree listens, again and again until it is told to go on: a parent
// that has not begun its join yet does not know the group.
class Admission {
  public:
    explicit Admission(Core& core) : core_(core), unready_(core.children.bits()) {}

    // This member listens; or a child's subtree does, perhaps before this member. True: all do, and rank 0 is
    // to open the election.
    bool start() {
        started_ = true;
        return check_ready();
    }
    bool on_ready(const wire::Header& header);
    void on_ping(const wire::Header& header) { pongs_.push(header); }
    void on_pong(const wire::Header& header);
    Nanoseconds next_deadline() const { return core_.phase == Phase::forming ? tell_at_ : kNever; }
    void on_timeout() {
        if (next_deadline() <= core_.now) tell_parent();
    }
    bool next_message(Effect& effect) {
        return (ready_due_ || core_.round_trip.ping_due() || !pongs_.empty()) && make_message(effect);
    }

  private:
    bool make_message(Effect& effect);
    bool check_ready();
    void tell_parent();
    Rank member_before() const;

    Core& core_;
    bool started_ = false, ready_due_ = false;
    std::uint32_t unready_;  // bit i for child i
    Nanoseconds tell_at_ = kNever, interval_ = kLeastReadyInterval;
    Ring<wire::Header> pongs_{16};
};

}  // namespace mcastcoll::engine
