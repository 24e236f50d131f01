// Measures this member's share of lost multicasts over the last few hundred fragments.
#pragma once

#include <cstdint>

#include "engine/loss_report.h"

namespace mcastcoll::engine {

class LossMeter {
  public:
    // An operation is over: `lost` of its fragments did not arrive by their first multicast, and `missed` of
    // them did not arrive by any multicast.
    void note(std::uint32_t lost, std::uint32_t missed, std::uint32_t fragments);
    // After note(): `first` of the lost fragments arrived late by their first multicast, and `any` of the
    // missed fragments by any multicast.
    void note_late(std::uint32_t first, std::uint32_t any, std::uint32_t fragments);
    // To be called while reports still cover operations from before copies began.
    void forget_missed() { missed_ = 0; }
    LossReport own() const {
        const auto rounded = [](std::int64_t share) {
            return static_cast<std::uint32_t>(share / (kFine / kMillion));
        };
        return {.lacking = rounded(lost_), .worst = rounded(lost_), .missed = rounded(missed_)};
    }

  private:
    // Finer than the reported unit, so that a share that decays in small steps reaches zero.
    static constexpr std::int64_t kFine = std::int64_t{1024} * kMillion;
    std::int64_t lost_ = 0, missed_ = 0;
};

}  // namespace mcastcoll::engine
