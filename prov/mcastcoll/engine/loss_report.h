// Loss of first multicasts in a subtree or the whole group, as watermark messages carry it
// (redundancy_policy.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace mcastcoll::engine {

// Shares are in millionths.
inline constexpr std::uint32_t kMillion = 1'000'000;

struct LossReport {
    // Expected number of members that a datagram does not reach: sum of all shares.
    std::uint64_t lacking = 0;
    std::uint32_t worst = 0;   // the largest share of a member
    std::uint32_t missed = 0;  // expected number of members that no copy reaches either
    bool operator==(const LossReport&) const = default;
    void add(const LossReport& other) {
        lacking += other.lacking;
        worst = std::max(worst, other.worst);
        missed = std::min(missed + other.missed, kMillion);
    }
};

// Encodes a report for the total field of watermark messages.
std::uint64_t pack(const LossReport& report);
// Decodes a report, limited to values that are possible in a group of this size.
LossReport unpack_losses(std::uint64_t total, std::uint32_t members);

}  // namespace mcastcoll::engine
