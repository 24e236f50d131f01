// Tracks late members, for which an operation has waited for long. While an operation is open each late
// member gets a request every second to report whether its part of the group has failed, because no other
// member may be left to report the failure. Also implements the user's stall timeout, which ends a group with
// stalled operations.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace mcastcoll::group {

class StallTimer {
  public:
    // kNever: operations may stall forever.
    explicit StallTimer(Nanoseconds stall_timeout) : stall_timeout_(stall_timeout) {}

    // Called when an operation was opened while no other was open.
    void begin(Nanoseconds now) {
        moved_at_ = now;
        if (!late_.empty()) request_at_ = now + kRequestInterval;
    }
    // Called when an operation made progress.
    void moved(Nanoseconds now) { moved_at_ = now; }
    // The time at which a stall becomes an error. The engine has its own stall timeout and knows better which
    // member is late, so the timeout for other members is longer by half.
    Nanoseconds stalled_at(bool with_engine) const {
        if (stall_timeout_ == kNever) return kNever;
        return moved_at_ + stall_timeout_ + Nanoseconds{with_engine ? stall_timeout_.value / 2 : 0};
    }

    // Adds a member that has just become late. The next request is due at once.
    void add_late(std::uint32_t rank, Nanoseconds now) {
        late_.push_back(rank);
        request_at_ = now;
    }
    const std::vector<std::uint32_t>& late() const { return late_; }
    Nanoseconds request_at() const { return request_at_; }
    // Counts a round of requests, and schedules another round if `again` is set. Returns the number of the
    // round.
    std::uint32_t next_round(bool again, Nanoseconds now) {
        request_at_ = again ? now + kRequestInterval : kNever;
        return rounds_++;
    }

  private:
    static constexpr Nanoseconds kRequestInterval = Nanoseconds::from_ms(1000);

    const Nanoseconds stall_timeout_;
    Nanoseconds moved_at_{};  // when an operation last started or made progress
    std::vector<std::uint32_t> late_;
    Nanoseconds request_at_ = kNever;
    std::uint32_t rounds_ = 0;
};

}  // namespace mcastcoll::group
