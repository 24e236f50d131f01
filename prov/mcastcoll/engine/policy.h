// A decision that each member makes by itself: one repair mode (`RepairMode`) per operation.
//
// A repair mode is fixed when an operation is posted. The rest of the engine reads the mode and never the
// policy's name. No mode relies on another member's mode: every receiver has a deadline after which it sends
// a NAK to its supplier (supply_graph.h), mostly the predecessor in the ring. The supplier queues the NAK. A
// test mixes all policies in one group.
//
//     setting "repair"     a receiver with missing data                  a member with the data
//     pull (default)       NAK to the ring predecessor at its deadline   answers NAKs
//     push                 waits four times as long; requests large      forwards small messages to its ring
//                          messages from the start                       successor
//     sync                 NAK to the report parent, twice; then pull    the root multicasts again
//     auto                 as pull, or as sync where the ring is slow    as pull, or as push where its
//                                                                        successor often sends NAKs
//
// pull: a member that receives a NAK for missing data forwards the NAK at once, and once. Of a large message
// only known holes are forwarded, since the rest may not have been sent yet.
//
// sync (LA-MPI; checkpoint.h): NAKs climb the report tree of the operation's root. Inner members forward a
// NAK at once, without fragments of NAKs forwarded within the last round trip, so the root receives one NAK
// per fragment. Every member forwards and every root multicasts again, whatever its own policy.
//
// auto decides per member from its own observations:
// - Forward to the ring successor when its NAKs are so frequent that, if all members behaved alike, half a
//   member would send one for each small operation: 7 % of recent operations among 8 members, 3.4 % among 16,
//   30 % in the smallest groups. Stop at a third of that. The last rank waits for the slowest of all members
//   that send NAKs, so a larger group justifies forwarding at fewer losses. Every eighth operation is not
//   forwarded, to see whether the successor would send a NAK.
// - NAK to the root when answers along the ring take more than four round trips (the predecessors lack the
//   fragment too: losses are correlated) in a group of at least five. After 64 repairs the ring is tried
//   again.
// - Request large messages from the start when more than 30 % of their fragments are not received; stop below
//   10 %.
//
// docs/POLICIES.md has measurements of all policies. Engine::policy() returns the current mode and these
// numbers; changes are logged at info level and counted (policy_changes).
#pragma once

#include "engine/group_config.h"
#include "engine/share.h"
#include "engine/smoothed_time.h"

namespace mcastcoll::engine {

// First destination of a receiver's NAKs.
enum class Route : std::uint8_t {
    supplier,  // the ring predecessor, which answers by message
    root,      // up the report tree to the root, which multicasts again; the supplier after fruitless rounds
};

struct RepairMode {
    Route route = Route::supplier;
    // Requests the whole message from the start, a window at a time, with or without multicast.
    bool chained = false;
    bool forwards = false;             // forwards a whole message to its ring successor without a NAK
    std::uint32_t silence_factor = 1;  // multiple of the usual silence before a NAK
    bool operator==(const RepairMode&) const = default;
};

// Current repair modes, with their measurements.
struct PolicyState {
    RepairMode small, large;
    std::uint32_t successor_naks = 0;  // NAKs by the ring successor per 1000 small operations
    // Fragments that the multicast did not bring, per 1000 of large operations.
    std::uint32_t large_missed = 0;
    Nanoseconds ring_repair{};  // time of an answer along the ring, 0: not measured
    Nanoseconds root_repair{};  // time until the root multicasts again, 0: not measured
};

class Policy {
  public:
    explicit Policy(const GroupConfig& config);

    RepairMode mode(bool large, std::uint64_t operation) const;
    PolicyState state() const;
    std::uint64_t changes() const { return changes_; }

    // Input of the automatic policy: whether the ring successor sent a NAK for a small operation that was not
    // forwarded, after the whole group has finished that operation.
    void note_successor(bool sent_nak);
    // Input at the completion of a large operation: number of fragments received by multicast.
    void note_large(std::uint32_t received, std::uint32_t fragments);
    // A NAK was answered along the ring, or by the root's multicast.
    void note_repair(Route route, Nanoseconds took, Nanoseconds round_trip);

  private:
    RepairMode chosen(bool large) const;
    template <typename Change>
    void learn(Change change);

    const Repair configured_;
    const std::uint32_t members_;
    Share successor_naks_, large_missed_;
    SmoothedTime ring_repair_{Nanoseconds{}}, root_repair_{Nanoseconds{}};
    Route route_ = Route::supplier;
    std::uint32_t by_ring_ = 0, by_root_ = 0;  // repairs since the route was chosen
    std::uint64_t changes_ = 0;
};

}  // namespace mcastcoll::engine
