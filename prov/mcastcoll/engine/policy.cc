#include "engine/policy.h"

namespace mcastcoll::engine {
namespace {

// Under push the data comes along the ring unsolicited; a NAK is due only when the data is much later than
// usual.
constexpr std::uint32_t kPushSilenceFactor = 4;
// A member that forwards cannot see whether a NAK would have come, so every eighth operation is not
// forwarded.
constexpr std::uint64_t kTryEvery = 8;
// Along the ring an answer takes one round trip more for each predecessor that lacks the data too. Beyond
// this many round trips the root is faster: one multicast serves the whole group.
constexpr std::int64_t kRingRoundTrips = 4;
// After this many repairs by the root, the ring is tried again.
constexpr std::uint32_t kRetryRingAfter = 64;
// Minimum number of ring repairs before a judgement: a single long wait is no evidence.
constexpr std::uint32_t kJudgeRingAfter = 8;
// Share of missed fragments of large messages, in thousandths, above which all of a message is requested.
constexpr std::uint32_t kOftenMissed = 300;
// A member forwards when kExpectedNaks NAKs per operation, in thousandths, would be expected in the group if
// every member behaved like its successor: the last rank waits for the slowest of them. In the smallest
// groups, a NAK for kOftenNaks operations in a thousand suffices.
constexpr std::uint32_t kExpectedNaks = 500, kOftenNaks = 300;
// Smallest group in which the ring can be long.
constexpr std::uint32_t kMinForRoot = 5;

}  // namespace

Policy::Policy(const GroupConfig& config)
    : configured_(config.repair),
      members_(config.members),
      successor_naks_(std::min(kOftenNaks, kExpectedNaks / std::max(config.members - 1, 1U) + 1), 64),
      large_missed_(kOftenMissed, 16) {}

RepairMode Policy::mode(bool large, std::uint64_t operation) const {
    RepairMode mode = chosen(large);
    if (configured_ == Repair::automatic && operation % kTryEvery == 0) mode.forwards = false;
    return mode;
}

RepairMode Policy::chosen(bool large) const {
    switch (configured_) {
        case Repair::pull:
            return {};
        case Repair::push:
            return {.chained = large, .forwards = !large, .silence_factor = kPushSilenceFactor};
        case Repair::sync:
            return {.route = Route::root};
        case Repair::automatic:
            return {.route = route_,
                    .chained = large && large_missed_.on(),
                    .forwards = !large && successor_naks_.on()};
    }
    return {};
}

PolicyState Policy::state() const {
    return {.small = chosen(false),
            .large = chosen(true),
            .successor_naks = successor_naks_.permille(),
            .large_missed = large_missed_.permille(),
            .ring_repair = ring_repair_.mean(),  // 0 at first
            .root_repair = root_repair_.mean()};
}

template <typename Change>
void Policy::learn(Change change) {
    if (configured_ != Repair::automatic) return;
    const RepairMode small = chosen(false), large = chosen(true);
    change();
    if (chosen(false) != small || chosen(true) != large) ++changes_;
}

void Policy::note_successor(bool sent_nak) {
    learn([&] { successor_naks_.sample(sent_nak ? 1000 : 0); });
}

void Policy::note_large(std::uint32_t received, std::uint32_t fragments) {
    learn([&] {
        const std::uint32_t missed = received < fragments ? fragments - received : 0;
        large_missed_.sample(static_cast<std::uint32_t>(std::uint64_t{missed} * 1000 / fragments));
    });
}

void Policy::note_repair(Route route, Nanoseconds took, Nanoseconds round_trip) {
    learn([&] {
        if (route == Route::supplier) {
            ring_repair_.sample(took);
            const bool slow = ring_repair_.mean().value > kRingRoundTrips * round_trip.value;
            const bool root_slower = root_repair_.sampled() && root_repair_.mean() > ring_repair_.mean();
            if (++by_ring_ < kJudgeRingAfter || !slow || root_slower || members_ < kMinForRoot) return;
            by_root_ = 0;
            route_ = Route::root;
            return;
        }
        root_repair_.sample(took);
        if (++by_root_ < kRetryRingAfter) return;
        by_ring_ = 0;
        route_ = Route::supplier;
        ring_repair_ = SmoothedTime(Nanoseconds{});
    });
}

}  // namespace mcastcoll::engine
