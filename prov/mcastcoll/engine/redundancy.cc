#include "engine/redundancy.h"

namespace mcastcoll::engine {
namespace {

// A share follows about so many fragments; a long message counts as a few of them.
constexpr std::int64_t kMeant = 256, kMostOfOne = 64;
// The words about the watermark have room for two shares, and above them for a few members.
constexpr unsigned kShareBits = 20;
static_assert(kMillion < 1U << kShareBits);
constexpr std::uint64_t kShareMask = (1U << kShareBits) - 1;
constexpr std::uint64_t kMostLacking = (std::uint64_t{1} << (64 - 2 * kShareBits)) - 1;
// Copies are bought until at most so many members, in millionths, may be expected to lack a fragment: the
// slowest hundredth of all operations is then one that nobody had to ask for. They are given back when a
// third of that would do without them.
constexpr std::uint64_t kTolerated = 5000;
// Where copies do not help as they should, losses come in bursts, and that is believed for so many reports.
constexpr std::uint32_t kBurstyFor = 64;
// Until then reports may count operations that were under way when copies began, and had none: four reports
// have room in the slots, and as many are on their way up and down the tree.
constexpr std::uint32_t kFreshFor = 8;
// Copies do not help when one of so many losses is one of the copy, too.
constexpr std::uint64_t kHelpless = 3;

// One of `fragments` counts so much, out of kMeant.
std::int64_t weight(std::uint32_t fragments) {
    return std::min<std::int64_t>(fragments, kMostOfOne);
}

}  // namespace

std::uint64_t pack(const LossReport& report) {
    return std::min(report.lacking, kMostLacking) << 2 * kShareBits |
           std::uint64_t{std::min(report.worst, kMillion)} << kShareBits | std::min(report.missed, kMillion);
}

LossReport unpack_losses(std::uint64_t total, std::uint32_t members) {
    const auto share = [](std::uint64_t bits) {
        return std::min(static_cast<std::uint32_t>(bits & kShareMask), kMillion);
    };
    return {.lacking = std::min(total >> 2 * kShareBits, std::uint64_t{members} * kMillion),
            .worst = share(total >> kShareBits),
            .missed = share(total)};
}

void LossMeter::note(std::uint32_t lost, std::uint32_t missed, std::uint32_t fragments) {
    const auto follow = [fragments](std::int64_t& share, std::int64_t count) {
        share += (count * kFine / fragments - share) * weight(fragments) / kMeant;
    };
    follow(lost_, lost);
    follow(missed_, missed);
}

void LossMeter::note_late(std::uint32_t first, std::uint32_t any, std::uint32_t fragments) {
    const std::int64_t one = weight(fragments) * kFine / fragments / kMeant;
    lost_ = std::max<std::int64_t>(0, lost_ - first * one);
    missed_ = std::max<std::int64_t>(0, missed_ - any * one);
}

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
    // What is lost by itself has a copy that is as likely to come as anything.
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

// After c copies a member lacks a fragment with its share to the power of c + 1; of all members together that
// is at most the sum of their shares times the worst share to the power of c.
std::uint64_t RedundancyPolicy::expected(std::uint32_t copies) const {
    // More than a thousand members are not worth more copies.
    std::uint64_t lacking = std::min(group_.lacking, std::uint64_t{1000} * kMillion);
    for (std::uint32_t i = 0; i < copies; ++i) lacking = lacking * group_.worst / kMillion;
    return lacking;
}

// As many copies as bring that below what is tolerated; where losses come in bursts, all.
std::uint32_t RedundancyPolicy::wanted_copies() const {
    std::uint32_t copies = 0;
    while (copies < kMostCopies && expected(copies) > (copies < chosen_.copies ? kTolerated / 3 : kTolerated))
        ++copies;
    if (copies > 0 && bursty_ > 0) copies = kMostCopies;
    return configured_ == Redundancy::on ? std::max(copies, 1U) : copies;
}

// Of a whole block somebody would lack a fragment too often.
bool RedundancyPolicy::wants_parity() const {
    const std::uint64_t tolerated = chosen_.parity ? kTolerated / 3 : kTolerated;
    return has_parity_ && (configured_ == Redundancy::on || group_.lacking * kBlockFragments > tolerated);
}

// As many rows as the worst member loses fragments of a block, but for one block in several hundred: the mean
// and three deviations of a binomial distribution, and one more since the share itself is only measured.
std::uint32_t RedundancyPolicy::parity(std::uint32_t fragments) const {
    if (!chosen_.parity) return 0;
    const std::uint64_t mean = std::uint64_t{fragments} * group_.worst;
    const std::uint32_t share = fragments < kShortBlock ? kShortShare : kParityShare;
    const std::uint32_t most = std::clamp(fragments / share, 1U, kMostParity);
    std::uint32_t rows = 1;
    const auto suffices = [mean](std::uint64_t lost) {
        const std::uint64_t above = lost * kMillion - mean;
        return lost * kMillion >= mean && above * above >= 9 * mean * kMillion;
    };
    while (rows < most && !suffices(rows - 1)) ++rows;
    return rows;
}

RedundancyState RedundancyPolicy::state() const {
    return {.spares = chosen_, .group = group_, .own = meter_.own()};
}

}  // namespace mcastcoll::engine
