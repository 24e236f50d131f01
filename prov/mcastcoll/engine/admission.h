// The join, up and down the gather tree. A member whose whole subtree listens reports `ready` to its parent.
// When all members are ready, rank 0 starts the first election about the multicast; its reachability map ends
// the join. This file also has the pings that measure the round trip between neighbouring ranks.
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

// Interval between repeated `ready` messages, doubled from the least to the most.
inline constexpr Nanoseconds kMinReadyInterval = Nanoseconds::from_ms(5);
inline constexpr Nanoseconds kMaxReadyInterval = Nanoseconds::from_ms(500);

// Each member repeats `ready` to its parent until `go` or the reachability map arrives: a parent that has not
// begun its join yet does not know the group and drops the message.
class Admission {
  public:
    explicit Admission(Core& core) : core_(core), unready_(core.children.bits()) {}

    // This member listens. Returns true on rank 0 if the whole group is ready: the caller then starts the
    // first election.
    bool start() {
        started_ = true;
        return check_ready();
    }
    // A child's whole subtree listens, perhaps before start(). Returns the same as start().
    bool on_ready(const wire::Header& header);
    void on_ping(const wire::Header& header) { pongs_.push(header); }
    void on_pong(const wire::Header& header);
    Nanoseconds next_deadline() const { return core_.phase == Phase::forming ? ready_at_ : kNever; }
    void on_timeout() {
        if (next_deadline() <= core_.now) report_ready();
    }
    bool next_message(Effect& effect) {
        return (ready_due_ || core_.round_trip.ping_due() || !pongs_.empty()) && make_message(effect);
    }

  private:
    bool make_message(Effect& effect);
    bool check_ready();
    void report_ready();
    Rank member_before() const;

    Core& core_;
    bool started_ = false, ready_due_ = false;
    std::uint32_t unready_;  // children whose subtrees do not all listen yet; bit i for child i
    Nanoseconds ready_at_ = kNever, interval_ = kMinReadyInterval;
    Ring<wire::Header> pongs_{16};
};

}  // namespace mcastcoll::engine
