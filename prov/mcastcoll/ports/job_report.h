// What mcastcoll-topo --job shows of this endpoint: its groups, written to a file of their own
// (topology/report.h) when they have changed, and not more often than now and then, because a program may
// join thousands.
#pragma once

#include <functional>
#include <optional>

#include "base/types.h"
#include "topology/report.h"

namespace mcastcoll::ofi {

class GroupsReport {
  public:
    static constexpr std::size_t kMostGroups = 64;

    // Something has changed.
    void mark() { changed_ = true; }
    // True when it is time to write what has changed.
    bool due(Nanoseconds now) const { return changed_ && now >= next_; }
    Nanoseconds next_deadline() const { return changed_ ? next_ : kNever; }
    // What has changed is going to be written, whatever comes of it.
    void begin(Nanoseconds now);
    // The error, once: later ones would be the same.
    Result<void> write(const topology::Report& report);

  private:
    std::optional<topology::JobReport> file_;
    bool changed_ = false, given_up_ = false;
    Nanoseconds next_{};
};

}  // namespace mcastcoll::ofi
