// Decides which sources one progress turn polls: the expected sources only, or all.
//
// Each poll is a system call, and a waiting rank does nothing else. Unexpected events (a peer's retransmit
// request, news of a failed member) must not wait long either. So every few turns, and after a bounded time,
// a turn polls all sources. The time bound matters for a process that is seldom scheduled and makes few
// turns.
#pragma once

#include "base/types.h"
#include "engine/poll_hint.h"

namespace mcastcoll::group {

class PollSelector {
  public:
    // Limits on polling expected sources only: the number of such turns in a row, and the time since the last
    // complete poll.
    static constexpr unsigned kNarrowTurns = 3;
    static constexpr Nanoseconds kNarrowTime = Nanoseconds::from_us(250);

    // Returns the sources for this turn to poll. everywhere: the caller has a reason to poll all sources.
    engine::PollHint turn(const engine::PollHint& expected, bool everywhere, Nanoseconds now) {
        if (!everywhere && narrow_ < kNarrowTurns && now - wide_at_ < kNarrowTime) {
            ++narrow_;
            return expected;
        }
        narrow_ = 0;
        wide_at_ = now;
        return engine::kPollAll;
    }

  private:
    unsigned narrow_ = kNarrowTurns;  // turns since the last complete poll
    Nanoseconds wide_at_{};
};

}  // namespace mcastcoll::group
