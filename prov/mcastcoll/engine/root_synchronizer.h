// Root synchronisation (setting "root_sync"; Hoefler, Siebert, Rehm 2007, section 2.1; agreed in the
// welcome): before stage 1 a root does not wait (none, default); waits a fixed time (delay:USEC); waits until
// one process, drawn per operation from the group key, reports that it has entered, at most four round trips
// (random); or chooses (adaptive). Adaptive counts the own operations for which a NAK came after stage 1.
// From 25 % on it tries a delay (the usual lateness of the drawn process), after 64 operations without a
// quarter's gain `random`, then nothing for 1024 operations. Only the multicast is held: a small broadcast
// completes at its root at once, and NAKs are answered. Operations of a root keep their order, and releases
// of barriers never wait.
#pragma once

#include "engine/group_config.h"
#include "engine/share.h"
#include "engine/smoothed_time.h"

namespace mcastcoll::engine {

// State of the root synchronisation: a receiver that has not entered yet may lose early fragments.
struct RootSyncState {
    RootSync present = RootSync::none;
    std::uint32_t degraded = 0;  // own operations with a NAK after stage 1, per 1000
    Nanoseconds lateness{};      // how much later than the root the drawn process enters
};

class RootSynchronizer {
  public:
    explicit RootSynchronizer(const GroupConfig& config);

    // The process for which the operation's root waits under `random`; every member draws the same process.
    Rank drawn(std::uint64_t operation, Rank root) const;
    // Whether the drawn process reports its entry.
    bool announces_entry() const {
        return configured_ == RootSync::random || configured_ == RootSync::adaptive;
    }
    // Longest time for which this root delays its multicast; 0: no wait.
    Nanoseconds longest_wait(Nanoseconds round_trip) const;
    // Whether the drawn process's report ends the wait earlier.
    bool ends_early() const { return present_ == RootSync::random; }

    // The drawn process entered this much later than the root.
    void note_entered(Nanoseconds late) { lateness_.sample(late); }
    // The whole group has finished an own operation. degraded: a NAK named a multicast fragment.
    void note_operation(bool degraded);
    RootSyncState state() const;

  private:
    const RootSync configured_;
    const std::uint32_t members_;
    const std::uint64_t seed_;
    const Nanoseconds delay_;
    RootSync present_;
    SmoothedTime lateness_{Nanoseconds{}};
    Share degraded_;
    std::uint32_t degraded_before_ = 0;  // in thousandths, when the present choice was made
    std::uint32_t operations_ = 0;       // own operations since then
    std::uint32_t rest_ = 0;             // operations before the next attempt
};

}  // namespace mcastcoll::engine
