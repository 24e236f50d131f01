// The protocol of one group, for one member (README.md). It never looks at a clock, a socket or the
// environment, and allocates only until its join is over.
#pragma once

#include "engine/admission.h"
#include "engine/elections.h"
#include "engine/expectation.h"
#include "engine/failure_detector.h"
#include "engine/receiver.h"
#include "engine/sender.h"

namespace mcastcoll::engine {

class Engine {
  public:
    explicit Engine(const GroupConfig& config) : core_(config) {}

    // Begins the join. Every member calls it once; Effect::joined follows.
    void start(Nanoseconds now);
    // Appends an operation. Errors: EAGAIN when pending_operations are queued, ESHUTDOWN after close(), the
    // group's own error once it has failed. An accepted operation ends with exactly one Effect::complete,
    // which has the number that this returns.
    Result<OperationId> submit(const Collective& operation, Nanoseconds now);
    // The number of the operation that is submitted next.
    OperationId next_operation() const { return operation_of(core_.slots.next() + core_.pending.size()); }
    // Of an operation that was submitted with less than all of it ready: so many bytes, from the start, may
    // be sent or combined now. Less than before changes nothing, an operation that is over neither.
    void advance(OperationId operation, std::uint64_t ready, Nanoseconds now);
    // How many bytes of the message or result, from its start, are in the caller's buffer: what may be passed
    // on, and never less than before. Small ones arrive when they complete. Of a reduction at rank 0: what is
    // combined, released or not. 0 when the operation has not begun, or is over and forgotten.
    std::uint64_t arrived(OperationId operation) const;
    // After Effect::gathered: the buffer is as everybody is to have it. False when the operation does not
    // wait for it; the group may have failed meanwhile.
    bool release(OperationId operation, Nanoseconds now);
    // The stall timeout counts from then on, kNever: not yet. A join that ends with an operation has a
    // deadline of its own.
    void count_stalls_from(Nanoseconds when) { core_.stalls_from = when; }
    // No more operations will come. Effect::left follows when all have closed and nobody needs this one.
    void close(Nanoseconds now);

    void on_packet(Bytes datagram, Nanoseconds now);
    void on_message(Bytes message, Nanoseconds now);
    // The process of this rank is gone, or was asked to be ignored; error is a positive FI_E* code.
    void on_peer_lost(Rank rank, int error, Nanoseconds now);
    // Ends the group for everybody, for what happened outside its members.
    void give_up(int error, Nanoseconds now) {
        core_.now = now;
        core_.fail(kNoRank, error);
    }

    // Writes the next effect and returns true, or returns false when there is none that is allowed.
    bool poll_effects(Allowed allowed, Effect& effect);

    // When on_timeout() wants to be called; kNever when nothing waits.
    Nanoseconds next_deadline() const;
    void on_timeout(Nanoseconds now);

    // What is open here waits for that; nothing is open: for nothing.
    Expectation expects() const;

    Phase phase() const { return core_.phase; }
    // The member of the group whose loss ends it, for the messages of all others: it need not be one of the
    // engine's. To be called before the failure; the first name counts.
    void name_loss(Rank of_group) {
        if (core_.named_loss == kNoRank) core_.named_loss = of_group;
    }
    Rank named_loss() const { return core_.named_loss; }
    // After a failure: everybody who is to know has been sent word.
    bool failure_told() const {
        return core_.failure.untold == core_.config.members && core_.failure.also == kNoRank;
    }
    const Counters& counters() const { return core_.counters; }
    const SupplyGraph& graph() const { return core_.verdicts.latest(); }
    std::uint32_t verdict_version() const { return core_.verdicts.version(); }
    const GroupConfig& config() const { return core_.config; }
    // What the repair policy and the root synchronisation are at present, and the numbers behind it.
    PolicyState policy() const { return core_.policy.state(); }
    RedundancyState redundancy() const { return core_.redundancy.state(); }
    RootSyncState root_sync() const { return core_.root_sync.state(); }
    Nanoseconds round_trip() const { return core_.round_trip.mean(); }
    // Throws nothing; aborts by assert when an invariant is broken. For tests and debug builds.
    void check_invariants() const;

  private:
    // What a call has brought about for others than those that it was for.
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
    Nacker nacker_{core_};
    Repairer repairer_{core_, nacker_};
    Supplier supplier_{core_, flow_, repairer_};
    Holds holds_{core_};
    Sender sender_{core_, flow_, supplier_, holds_};
    Receiver receiver_{core_, flow_, nacker_, repairer_, supplier_};
    Gatherer gatherer_{core_, flow_, supplier_};
    Checkpoint checkpoint_{core_};
    FailureDetector detector_{core_, checkpoint_, gatherer_};
};

}  // namespace mcastcoll::engine
