// Round trips between networks that were measured for one join and need not be measured for the next.
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
    // Pairs of networks. What comes when they are all there is measured again each time.
    static constexpr std::size_t kMost = 1024;

    // By the identities that topology::SiteSurvey gives, in either order.
    std::optional<Nanoseconds> find(std::uint64_t one, std::uint64_t other) const {
        const auto found = times_.find(std::minmax(one, other));
        return found == times_.end() ? std::nullopt : std::optional(found->second);
    }
    // The first word counts.
    void keep(std::uint64_t one, std::uint64_t other, Nanoseconds time) {
        if (times_.size() < kMost) times_.emplace(std::minmax(one, other), time);
    }

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, Nanoseconds> times_;
};

}  // namespace mcastcoll::group
