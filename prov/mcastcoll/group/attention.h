// Where a process looks in a turn: always at what its groups expect, at everything now and then.
//
// Why it exists: each look is a system call, and a rank that waits makes nothing else. What nobody expects
// comes all the same, a question for what others have lost or word of a death, and must not wait long: so
// everything is looked at every few turns, and after a time, since who is seldom let run makes few turns.
#pragma once

#include "base/types.h"
#include "engine/expectation.h"

namespace mcastcoll::group {

class Attention {
  public:
    // So many turns in a row look at what is expected only, and none so long after the last that did not.
    static constexpr unsigned kNarrowTurns = 3;
    static constexpr Nanoseconds kNarrowTime = Nanoseconds::from_us(250);

    // What this turn looks at. everywhere: there is reason to look at everything.
    engine::Expectation turn(const engine::Expectation& expected, bool everywhere, Nanoseconds now) {
        if (!everywhere && narrow_ < kNarrowTurns && now - wide_at_ < kNarrowTime) {
            ++narrow_;
            return expected;
        }
        narrow_ = 0;
        wide_at_ = now;
        return engine::kAnything;
    }

  private:
    unsigned narrow_ = kNarrowTurns;  // since the last turn that looked everywhere
    Nanoseconds wide_at_{};
};

}  // namespace mcastcoll::group
