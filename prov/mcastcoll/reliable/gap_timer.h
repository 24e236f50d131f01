// Time of a report about a hole in a sender's packets: delayed, because reordering is no loss, then repeated
// with growing pauses while nothing changes.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mcastcoll::reliable {

class GapTimer {
  public:
    Nanoseconds deadline() const { return at_; }
    void stop() { at_ = kNever; }
    // Called after a packet: has_gap says whether a hole exists now.
    void watch(bool has_gap, Nanoseconds now);
    // The hole that begins with this packet has been reported.
    void reported(std::uint64_t first_missing, Nanoseconds now);

  private:
    Nanoseconds at_ = kNever, pause_{0};
    std::uint64_t reported_from_ = 0;
};

}  // namespace mcastcoll::reliable
