// What a root waits for before it multicasts (Hoefler, Siebert, Rehm 2007, section 2.1): a receiver that has
// not entered yet may lose what comes. Nothing; a fixed time; or until one other process, drawn for each
// operation from what the join agreed on, says that it has entered. Adaptive watches how many of its own
// operations were asked for afterwards, and picks among the three.
#pragma once

#include <cstdint>

#include "engine/config.h"
#include "engine/timing.h"

namespace mcastcoll::engine {

struct RootSyncState {
    RootSync configured = RootSync::none;
    RootSync present = RootSync::none;
    std::uint32_t troubled = 0;  // of 1000 own operations, those that somebody asked for after stage 1
    Nanoseconds lateness{};      // how much later than the root the drawn process entered
};

class RootSynchronizer {
  public:
    explicit RootSynchronizer(const GroupConfig& config);

    // The process whose entering this root waits for under `random`; every member draws the same one.
    Rank drawn(std::uint64_t operation, Rank root) const;
    // Whether the drawn process is to tell.
    bool tells() const { return configured_ == RootSync::random || configured_ == RootSync::adaptive; }
    // How long the root may wait at most, and whether the drawn process ends it earlier. 0: not at all.
    Nanoseconds longest_wait(Nanoseconds round_trip) const;
    bool ends_early() const { return present_ == RootSync::random; }

    // The drawn process entered so much later than the root.
    void note_entered(Nanoseconds late) { lateness_.sample(late); }
    // An own operation is over everywhere: did anybody ask for what was multicast?
    void note_operation(bool troubled);
    RootSyncState state() const;

  private:
    const RootSync configured_;
    const std::uint32_t members_;
    const std::uint64_t seed_;
    const Nanoseconds delay_;
    RootSync present_;
    SmoothedTime lateness_{Nanoseconds{}};
    std::int64_t troubled_ = 0;         // thousandths, scaled
    std::int64_t troubled_before_ = 0;  // when the present choice was made
    std::uint32_t operations_ = 0;      // since then
    std::uint32_t rest_ = 0;            // operations before the next try
};

}  // namespace mcastcoll::engine
