// What each member decides by itself: how losses are repaired, one plan per operation, and what a root waits
// for (README.md: Repair policies, Root synchronisation).
#pragma once

#include "engine/config.h"
#include "engine/timing.h"

namespace mcastcoll::engine {

// Whom a receiver turns to first.
enum class Route : std::uint8_t {
    supplier,  // its ring predecessor, who answers by message
    root,      // up the report tree to the root, who multicasts again; the supplier after fruitless rounds
};

struct RepairPlan {
    Route route = Route::supplier;
    bool chained = false;        // asks for everything from the start, a window at a time, multicast or not
    bool hands_on = false;       // gives a whole message to its ring successor without being asked
    std::uint32_t patience = 1;  // of how many silences before it asks
    bool operator==(const RepairPlan&) const = default;
};

// What a member chose, and the numbers behind it.
struct PolicyState {
    RepairPlan small, large;
    std::uint32_t successor_asks = 0;  // of 1000 small operations, those that the ring successor asked for
    std::uint32_t large_missed = 0;    // of 1000 fragments of large ones, those the multicast did not bring
    Nanoseconds ring_repair{};         // what an answer along the ring takes, 0: not seen yet
    Nanoseconds root_repair{};         // what another multicast by the root takes, 0: not seen yet
};

// A share in thousandths that follows the last samples, and a switch with hysteresis on it.
class Share {
  public:
    // on: from where on the switch is on, in thousandths; it is off again below a third of it. samples: of so
    // many the share is about the mean.
    Share(std::uint32_t on, std::uint32_t samples) : turns_on_(on), samples_(samples) {}
    // One sample, itself a share.
    void sample(std::uint32_t permille) {
        const auto wanted = static_cast<std::int64_t>(permille) * kScale;
        value_ += (wanted - value_) / samples_;
        on_ = on_ ? value_ > turns_on_ * kScale / 3 : value_ >= turns_on_ * kScale;
    }
    std::uint32_t permille() const { return static_cast<std::uint32_t>(value_ / kScale); }
    bool on() const { return on_; }

  private:
    static constexpr std::int64_t kScale = 1024;
    std::int64_t turns_on_, samples_, value_ = 0;
    bool on_ = false;
};

class Policy {
  public:
    explicit Policy(const GroupConfig& config);

    RepairPlan plan(bool large, std::uint64_t operation) const;
    PolicyState state() const;
    std::uint64_t changes() const { return changes_; }

    // What the automatic policy learns from. Everybody disposes of a small operation which it did not hand
    // on: had the ring successor to ask for it?
    void note_successor(bool asked);
    // A large operation is complete: how much of it came by multicast?
    void note_large(std::uint32_t heard, std::uint32_t fragments);
    // A question was answered along the ring, or by the root's multicast.
    void note_repair(Route route, Nanoseconds took, Nanoseconds round_trip);

  private:
    RepairPlan chosen(bool large) const;
    template <typename Change>
    void learn(Change change);

    const Repair configured_;
    const std::uint32_t members_;
    Share successor_asks_, large_missed_;
    SmoothedTime ring_repair_{Nanoseconds{}}, root_repair_{Nanoseconds{}};
    Route route_ = Route::supplier;
    std::uint32_t by_ring_ = 0, by_root_ = 0;  // repairs since the route was chosen
    std::uint64_t changes_ = 0;
};

// What a root waits for before it multicasts (README.md: Root synchronisation): a receiver that has not
// entered yet may lose what comes. Adaptive watches how many of its own operations were asked for afterwards,
// and picks among the others.
struct RootSyncState {
    RootSync present = RootSync::none;
    std::uint32_t troubled = 0;  // of 1000 own operations, those that somebody asked for after stage 1
    Nanoseconds lateness{};      // how much later than the root the drawn process entered
};

class RootSynchronizer {
  public:
    explicit RootSynchronizer(const GroupConfig& config);

    // The process whose entering this root waits for under `random`; every member draws the same one.
    Rank drawn(std::uint64_t operation, Rank root) const;
    // Whether the drawn process is to tell.
    bool tells() const { return configured_ == RootSync::random || configured_ == RootSync::adaptive; }
    // How long the root may wait at most, and whether the drawn process ends it earlier. 0: not at all.
    Nanoseconds longest_wait(Nanoseconds round_trip) const;
    bool ends_early() const { return present_ == RootSync::random; }

    // The drawn process entered so much later than the root.
    void note_entered(Nanoseconds late) { lateness_.sample(late); }
    // An own operation is over everywhere: did anybody ask for what was multicast?
    void note_operation(bool troubled);
    RootSyncState state() const;

  private:
    const RootSync configured_;
    const std::uint32_t members_;
    const std::uint64_t seed_;
    const Nanoseconds delay_;
    RootSync present_;
    SmoothedTime lateness_{Nanoseconds{}};
    Share troubled_;
    std::uint32_t troubled_before_ = 0;  // in thousandths, when the present choice was made
    std::uint32_t operations_ = 0;       // since then
    std::uint32_t rest_ = 0;             // operations before the next try
};

}  // namespace mcastcoll::engine
