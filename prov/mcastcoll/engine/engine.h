// The protocol of one group, for one member (README.md). The engine reads no clock, socket or environment
// variable, and allocates memory only until its join is over and for a new reachability map.
//
// After every call the caller polls effects. Most parts then have nothing to send, so each part answers in
// its header from flags that are set already, and is called only when there is something. Slots are used in
// turn and are out of the cache by then, so a renewed slot resets only the fields that its last operation
// used.
#pragma once

#include "engine/admission.h"
#include "engine/elections.h"
#include "engine/failure_detector.h"
#include "engine/holds.h"
#include "engine/poll_hint.h"
#include "engine/receiver.h"
#include "engine/sender.h"

namespace mcastcoll::engine {

class Engine {
  public:
    explicit Engine(const GroupConfig& config) : core_(config) {}

    // Begins the join. Every member calls start() once; Effect::joined follows.
    void start(Nanoseconds now);
    // Appends an operation. Errors: EAGAIN when pending_operations are queued, ESHUTDOWN after close(), the
    // group's own error after a failure. An accepted operation ends with exactly one Effect::complete, which
    // carries the returned number.
    Result<OperationId> submit(const Collective& operation, Nanoseconds now);
    // Number of the next submitted operation.
    OperationId next_operation() const { return operation_of(core_.slots.next() + core_.pending.size()); }
    // For an operation submitted before its input was complete: the first `ready` bytes may now be sent or
    // combined. A smaller value than before, and an operation that is over, are ignored.
    void advance(OperationId operation, std::uint64_t ready, Nanoseconds now);
    // Length of the prefix of the message or result that is in the caller's buffer and may be forwarded;
    // never decreases. A small message arrives when it completes. For a reduction at rank 0: the combined
    // prefix, released or not. 0 if the operation has not begun, or is over and forgotten.
    std::uint64_t arrived(OperationId operation) const;
    // After Effect::gathered: the buffer holds the result for all members. False if the operation does not
    // wait for a release, for instance because the group has failed.
    bool release(OperationId operation, Nanoseconds now);
    // The stall timeout counts from this time on; kNever: not yet. The operation at the end of a join waits
    // for late members until the join's own deadline, so stalls count only after the join.
    void count_stalls_from(Nanoseconds when) { core_.stalls_from = when; }
    // Announces that no operation will follow. Effect::left comes when the whole group has closed and no peer
    // needs this member.
    void close(Nanoseconds now);

    void on_packet(Bytes datagram, Nanoseconds now);
    void on_message(Bytes message, Nanoseconds now);
    // The process of this rank is dead or is to be treated as such; error is a positive FI_E* code.
    void on_peer_lost(Rank rank, int error, Nanoseconds now);
    // Ends the group on all members for a reason outside the group.
    void give_up(int error, Nanoseconds now) {
        core_.now = now;
        core_.fail(kNoRank, error);
    }

    // Writes the next allowed effect and returns true, or returns false if there is none.
    bool poll_effects(Allowed allowed, Effect& effect);

    // Time of the next on_timeout() call; kNever if no timer runs.
    Nanoseconds next_deadline() const;
    void on_timeout(Nanoseconds now);

    // Paths on which the open operations expect data; none without open operations.
    PollHint poll_hint() const;

    Phase phase() const { return core_.phase; }
    // Names the lost member whose loss ends the group, for log messages of the peers. of_group: its rank in
    // the whole group; the member need not belong to this engine. To be called before the failure; the first
    // call counts.
    void name_loss(Rank of_group) {
        if (core_.named_loss == kNoRank) core_.named_loss = of_group;
    }
    Rank named_loss() const { return core_.named_loss; }
    // After a failure: every peer that needs the error has been sent the error.
    bool failure_sent() const {
        return core_.failure.next_to_inform == core_.config.members && core_.failure.also == kNoRank;
    }
    const Counters& counters() const { return core_.counters; }
    const SupplyGraph& graph() const { return core_.reachability.latest(); }
    std::uint32_t map_version() const { return core_.reachability.version(); }
    const GroupConfig& config() const { return core_.config; }
    // Current repair mode, redundancy and root synchronisation, with their measurements.
    PolicyState policy() const { return core_.policy.state(); }
    RedundancyState redundancy() const { return core_.redundancy.state(); }
    RootSyncState root_sync() const { return core_.root_sync.state(); }
    Nanoseconds round_trip() const { return core_.round_trip.mean(); }
    // Aborts by assert on a broken invariant. For tests and debug builds.
    void check_invariants() const;

  private:
    // Runs work that one part deferred to another during this call.
    void settle() {
        while (std::exchange(core_.unsettled, false)) {
            elections_.settle();
            checkpoint_.settle();
            begin_pending();
        }
    }
    void begin_pending();
    void begin(const Collective& operation);

    bool accept(const wire::Decoded& decoded, std::uint64_t& received, Nanoseconds now);
    void dispatch_packet(const wire::Header& header, Bytes payload);
    void dispatch_message(const wire::Header& header, Bytes payload);
    bool next_multicast(Effect& effect);
    bool next_message(Effect& effect);
    bool next_slot_message(Slot& slot, Effect& effect);

    Core core_;
    Admission admission_{core_};
    Elections elections_{core_};
    FlowControl flow_{core_};
    RootRepairer root_repairer_{core_};
    Repairer repairer_{core_, root_repairer_};
    Supplier supplier_{core_, flow_, repairer_};
    Holds holds_{core_};
    Sender sender_{core_, flow_, supplier_, holds_};
    Receiver receiver_{core_, flow_, root_repairer_, repairer_, supplier_};
    Gatherer gatherer_{core_, flow_, supplier_};
    Checkpoint checkpoint_{core_};
    FailureDetector detector_{core_, checkpoint_, gatherer_};
};

}  // namespace mcastcoll::engine
