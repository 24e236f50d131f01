// Round trips between networks, measured for one join and reused by the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/types.h"

namespace mcastcoll::group {

class RoundTrips {
  public:
    // Maximum number of network pairs. Pairs beyond the limit are measured again for each join.
    static constexpr std::size_t kMax = 1024;

    // Identities are those of topology::SiteSurvey, in either order.
    std::optional<Nanoseconds> find(std::uint64_t one, std::uint64_t other) const {
        const auto found = times_.find(std::minmax(one, other));
        return found == times_.end() ? std::nullopt : std::optional(found->second);
    }
    // The first value counts.
    void keep(std::uint64_t one, std::uint64_t other, Nanoseconds time) {
        if (times_.size() < kMax) times_.emplace(std::minmax(one, other), time);
    }

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds> times_;
};

}  // namespace mcastcoll::group
