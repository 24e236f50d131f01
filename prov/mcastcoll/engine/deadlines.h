// How long a member waits before it asks, by what it has measured of its group.
#pragma once

#include "engine/config.h"
#include "engine/round_trip.h"
#include "engine/slot.h"
#include "engine/timing.h"

namespace mcastcoll::engine {

class Deadlines {
  public:
    Deadlines(const GroupConfig& config, const RoundTrip& round_trip)
        : config_(config),
          round_trip_(round_trip),
          arrival_gap_(config.initial_rtt),
          nack_answer_(config.initial_rtt) {}

    // How long a hole may be mere reordering.
    Nanoseconds gap() const;
    // How long silence may be mere waiting for the root.
    Nanoseconds silence(const Slot& slot) const;
    // How long the root of this operation, so many hops away, may take to multicast again.
    Nanoseconds nack(std::int64_t hops) const;

    // The first of an operation has come.
    void on_first(const Slot& slot, Nanoseconds now) { first_times(slot).sample(now - slot.posted_at); }
    // A fragment has come so long after the one before it.
    void on_gap(const Slot& slot, Nanoseconds gap);
    // The root has multicast again what it was asked for.
    void on_nack_answer(Nanoseconds took) { nack_answer_.sample(took); }

  private:
    RecentTimes& first_times(const Slot& slot);
    Nanoseconds release(Nanoseconds usual) const;

    const GroupConfig& config_;
    const RoundTrip& round_trip_;
    SmoothedTime arrival_gap_, nack_answer_;
    RecentTimes first_arrival_, first_release_, first_result_, stream_gap_;
};

}  // namespace mcastcoll::engine
