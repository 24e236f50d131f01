#include "engine/root_sync.h"

#include <algorithm>

#include "engine/engine.h"

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

// As root of a broadcast that has just been posted.
void Engine::hold(Slot& slot, Nanoseconds now) {
    if (!graph_of(slot).multicasts(config_.self)) return;
    const Nanoseconds wait = root_sync_.longest_wait(round_trip_.mean());
    const bool waits = wait > Nanoseconds{} && !(root_sync_.ends_early() && slot.entered);
    // Behind one that is held, so that receivers do not take the later for a sign that the earlier is lost.
    if (!waits && !awaits_bytes(slot) && holds_.empty()) return;
    if (!holds_.push({slot.id, now + wait})) return;
    slot.held = true;
    ++counters_.roots_held;
}

// The first in the queue may wait for its caller's bytes, which no time brings.
Nanoseconds Engine::next_release() const {
    if (holds_.empty()) return kNever;
    const Timed& first = holds_.front();
    const Slot& slot = slots_.at(number_of(first.operation));
    return slot.id == first.operation && awaits_bytes(slot) ? kNever : first.at;
}

void Engine::release_holds(Nanoseconds now) {
    while (!holds_.empty()) {
        const Timed& first = holds_.front();
        Slot& slot = slots_.at(number_of(first.operation));
        const bool over =
            slot.id != first.operation ||
            (!awaits_bytes(slot) && (first.at <= now || (root_sync_.ends_early() && slot.entered)));
        if (!over) return;
        if (slot.id == first.operation) {
            slot.held = false;
            mark_ready(slot);
        }
        holds_.pop();
    }
}

// As a receiver: tells the root, unless its multicast was quicker.
void Engine::tell_entered(Slot& slot) {
    if (!root_sync_.tells() || slot.heard_ever) return;
    if (root_sync_.drawn(number_of(slot.id), slot.operation.root) != config_.self) return;
    slot.entered_due = graph_of(slot).multicasts(slot.operation.root);
}

void Engine::on_entered(const wire::Header& header, Nanoseconds now) {
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    const bool posted = slot->state >= SlotState::active;
    if (root_sync_.drawn(number_of(slot->id), config_.self) != header.sender ||
        (posted && !slot->is_root(config_.self))) {
        ++counters_.bad_sender;
        return;
    }
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (slot->entered) return;
    slot->entered = true;
    root_sync_.note_entered(posted ? now - slot->posted_at : Nanoseconds{});
    release_holds(now);
}

}  // namespace mcastcoll::engine
