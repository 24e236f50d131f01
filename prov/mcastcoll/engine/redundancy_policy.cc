#include "engine/redundancy_policy.h"

#include "engine/parity_code.h"

namespace mcastcoll::engine {
namespace {

// Number of members, in millionths, that may be expected to lack a fragment before copies are sent. The
// slowest hundredth of all operations then needs no NAK. Copies stop when a third of this value is reached
// without copies.
constexpr std::uint64_t kTolerated = 5000;
// Number of reports for which losses count as bursts after copies failed to help.
constexpr std::uint32_t kBurstyFor = 64;
// Number of reports after the start of copies that may include operations without copies: four reports fit in
// the slots, and as many are on their way up and down the tree.
constexpr std::uint32_t kFreshFor = 8;
// Copies do not help if more than one in three lost fragments has a lost copy, too.
constexpr std::uint64_t kHelpless = 3;

}  // namespace

RedundancyPolicy::RedundancyPolicy(const GroupConfig& config)
    : configured_(config.redundancy), members_(config.members), has_parity_(config.parity_buffers > 0) {
    if (configured_ == Redundancy::on) chosen_ = {.copies = 1, .parity = has_parity_};
}

LossReport RedundancyPolicy::subtree() const {
    LossReport sum = meter_.own();
    for (const LossReport& child : children_) sum.add(child);
    return sum;
}

void RedundancyPolicy::adopt(const LossReport& group) {
    group_ = group;
    if (configured_ == Redundancy::off) return;
    // If losses are independent, the copy of a lost fragment arrives with the usual probability.
    const bool helpless = group.missed > kTolerated && group.missed > group.lacking / kHelpless;
    if (chosen_.copies > 0 && fresh_ == 0 && helpless)
        bursty_ = kBurstyFor;
    else if (bursty_ > 0)
        --bursty_;
    const std::uint32_t copies = wanted_copies();
    const Spares before = std::exchange(
        chosen_, {.copies = copies, .spread = copies > 0 && bursty_ > 0, .parity = wants_parity()});
    changes_ += chosen_ != before;
    if (before.copies == 0)
        fresh_ = kFreshFor;
    else if (fresh_ > 0)
        --fresh_;
    if (fresh_ > 0) meter_.forget_missed();
}

// After c copies a member lacks a fragment with its share to the power of c + 1; for all members together, at
// most the sum of their shares times the largest share to the power of c.
std::uint64_t RedundancyPolicy::expected(std::uint32_t copies) const {
    // A datagram that misses more than a thousand members justifies no more copies than one that misses a
    // thousand.
    std::uint64_t lacking = std::min(group_.lacking, std::uint64_t{1000} * kMillion);
    for (std::uint32_t i = 0; i < copies; ++i) lacking = lacking * group_.worst / kMillion;
    return lacking;
}

// The fewest copies that bring expected() below the tolerated value; the maximum if losses come in bursts.
std::uint32_t RedundancyPolicy::wanted_copies() const {
    std::uint32_t copies = 0;
    while (copies < kMaxCopies && expected(copies) > (copies < chosen_.copies ? kTolerated / 3 : kTolerated))
        ++copies;
    if (copies > 0 && bursty_ > 0) copies = kMaxCopies;
    return configured_ == Redundancy::on ? std::max(copies, 1U) : copies;
}

// Whether a member would lack a fragment of a whole block too often.
bool RedundancyPolicy::wants_parity() const {
    const std::uint64_t tolerated = chosen_.parity ? kTolerated / 3 : kTolerated;
    return has_parity_ && (configured_ == Redundancy::on || group_.lacking * kBlockFragments > tolerated);
}

// Number of rows that suffices for the worst member except in one block of several hundred: mean and three
// deviations of a binomial distribution, plus one because the share is measured.
std::uint32_t RedundancyPolicy::parity(std::uint32_t fragments) const {
    if (!chosen_.parity) return 0;
    const std::uint64_t mean = std::uint64_t{fragments} * group_.worst;
    const std::uint32_t share = fragments < kShortBlock ? kShortShare : kParityShare;
    const std::uint32_t max = std::clamp(fragments / share, 1U, kMaxParity);
    std::uint32_t rows = 1;
    const auto suffices = [mean](std::uint64_t lost) {
        const std::uint64_t above = lost * kMillion - mean;
        return lost * kMillion >= mean && above * above >= 9 * mean * kMillion;
    };
    while (rows < max && !suffices(rows - 1)) ++rows;
    return rows;
}

RedundancyState RedundancyPolicy::state() const {
    return {.spares = chosen_, .group = group_, .own = meter_.own()};
}

}  // namespace mcastcoll::engine
