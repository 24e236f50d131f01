#include "engine/root_synchronizer.h"

namespace mcastcoll::engine {
namespace {

// Shares of own operations with a NAK, in thousandths: from kMuch on the root tries a wait; below kLittle it
// tries without.
constexpr std::uint32_t kMuch = 250, kLittle = 50;
// A choice is judged after this many own operations; a choice that did not help is not retried before
// kRetryAfter.
constexpr std::uint32_t kJudgeAfter = 64;
constexpr std::uint32_t kRetryAfter = 1024;
// Longest wait of a root, in round trips.
constexpr std::int64_t kMaxRoundTrips = 4;

// splitmix64's finalizer, which spreads consecutive numbers well.
std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

}  // namespace

RootSynchronizer::RootSynchronizer(const GroupConfig& config)
    : configured_(config.root_sync),
      members_(config.members),
      seed_(static_cast<std::uint64_t>(config.key)),
      delay_(config.root_delay),
      present_(config.root_sync == RootSync::adaptive ? RootSync::none : config.root_sync),
      degraded_(kMuch, 16) {}

Rank RootSynchronizer::drawn(std::uint64_t operation, Rank root) const {
    if (members_ < 2) return kNoRank;
    const std::uint64_t step = 1 + mix(seed_ ^ mix(operation)) % (members_ - 1);
    return rank_of((index_of(root) + step) % members_);
}

Nanoseconds RootSynchronizer::longest_wait(Nanoseconds round_trip) const {
    const Nanoseconds max{kMaxRoundTrips * round_trip.value};
    if (present_ == RootSync::random) return max;
    if (present_ != RootSync::delay) return {};
    if (configured_ == RootSync::delay) return delay_;
    return lateness_.sampled() ? lateness_.deadline(1, Nanoseconds{round_trip.value / 4}, max) : max;
}

// With many NAKs, takes the next stronger choice, and none when even the strongest did not help. After a long
// time with few NAKs, tries without a wait.
void RootSynchronizer::note_operation(bool degraded) {
    degraded_.sample(degraded ? 1000 : 0);
    ++operations_;
    if (configured_ != RootSync::adaptive) return;
    if (rest_ > 0) --rest_;
    if (operations_ < kJudgeAfter) return;
    const std::uint32_t share = degraded_.permille();
    const bool helped = share * 4 < degraded_before_ * 3;
    if (present_ == RootSync::none) {
        if (share < kMuch || rest_ > 0) return;
        degraded_before_ = share;
        present_ = RootSync::delay;
    } else if (!helped) {
        if (present_ == RootSync::random) rest_ = kRetryAfter;
        present_ = present_ == RootSync::delay ? RootSync::random : RootSync::none;
    } else if (share < kLittle && operations_ >= kRetryAfter) {
        present_ = RootSync::none;
    } else {
        return;
    }
    operations_ = 0;
}

RootSyncState RootSynchronizer::state() const {
    return {.present = present_, .degraded = degraded_.permille(), .lateness = lateness_.mean()};
}

}  // namespace mcastcoll::engine
