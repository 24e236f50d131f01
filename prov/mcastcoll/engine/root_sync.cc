#include "engine/root_sync.h"

namespace mcastcoll::engine {
namespace {

constexpr std::int64_t kScale = 1024;
constexpr std::int64_t kMuch = 250 * kScale, kLittle = 50 * kScale;
// A choice is judged after so many own operations, and a choice that did not help is not tried again sooner.
constexpr std::uint32_t kJudgeAfter = 64;
constexpr std::uint32_t kRetryAfter = 1024;
// A root goes ahead after so many round trips, whoever has entered.
constexpr std::int64_t kMostRoundTrips = 4;

// splitmix64, a finalizer that spreads consecutive numbers well.
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
      present_(config.root_sync == RootSync::adaptive ? RootSync::none : config.root_sync) {}

Rank RootSynchronizer::drawn(std::uint64_t operation, Rank root) const {
    if (members_ < 2) return kNoRank;
    const std::uint64_t step = 1 + mix(seed_ ^ mix(operation)) % (members_ - 1);
    return rank_of((index_of(root) + step) % members_);
}

Nanoseconds RootSynchronizer::longest_wait(Nanoseconds round_trip) const {
    const Nanoseconds most{kMostRoundTrips * round_trip.value};
    switch (present_) {
        case RootSync::none:
        case RootSync::adaptive:
            return {};
        case RootSync::delay:
            if (configured_ == RootSync::delay) return delay_;
            return lateness_.sampled() ? lateness_.deadline(1, Nanoseconds{round_trip.value / 4}, most)
                                       : most;
        case RootSync::random:
            return most;
    }
    return {};
}

// Much trouble: the next stronger choice, and back to nothing when even the strongest did not better it.
// Little trouble for long: see whether less does.
void RootSynchronizer::note_operation(bool troubled) {
    troubled_ += ((troubled ? 1000 * kScale : 0) - troubled_) / 16;
    ++operations_;
    if (configured_ != RootSync::adaptive) return;
    if (rest_ > 0) --rest_;
    if (operations_ < kJudgeAfter) return;
    const bool helped = troubled_ * 4 < troubled_before_ * 3;
    if (present_ == RootSync::none) {
        if (troubled_ < kMuch || rest_ > 0) return;
        troubled_before_ = troubled_;
        present_ = RootSync::delay;
    } else if (!helped) {
        if (present_ == RootSync::random) rest_ = kRetryAfter;
        present_ = present_ == RootSync::delay ? RootSync::random : RootSync::none;
    } else if (troubled_ < kLittle && operations_ >= kRetryAfter) {
        present_ = RootSync::none;
    } else {
        return;
    }
    operations_ = 0;
}

RootSyncState RootSynchronizer::state() const {
    return {.configured = configured_,
            .present = present_,
            .troubled = static_cast<std::uint32_t>(troubled_ / kScale),
            .lateness = lateness_.sampled() ? lateness_.mean() : Nanoseconds{}};
}

}  // namespace mcastcoll::engine
