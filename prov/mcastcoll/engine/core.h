// State shared by the parts of an engine (README.md: Parts). Nothing in this file calls a part: `unsettled`
// notes work for other parts, which the engine does at the end of the call.
#pragma once

#include "engine/deadlines.h"
#include "engine/departure.h"
#include "engine/loss_report.h"
#include "engine/notices.h"
#include "engine/reachability_maps.h"
#include "engine/redundancy_policy.h"
#include "engine/root_synchronizer.h"
#include "engine/round_trip.h"
#include "engine/slots.h"
#include "engine/suspicion.h"
#include "engine/turns.h"

namespace mcastcoll::engine {

struct Core {
    explicit Core(const GroupConfig& config);
    Core(const Core&) = delete;  // the parts and the engine hold references

    const GroupConfig config;
    const RankList children;  // in the tree of gathers, watermarks and leaving
    const Rank parent;
    const std::vector<std::uint32_t> targets;  // ranges with a listener other than this member
    Nanoseconds now{};                         // time of the call in progress
    Phase phase = Phase::forming;
    bool unsettled = false;
    std::uint64_t kept_bytes = 0;  // length of all small messages finished here
    Nanoseconds moved_at{};        // last time an operation began or ended here, or the watermark rose
    Nanoseconds stalls_from{};  // earlier standstill does not count as a stall; kNever: no stall counts yet
    Counters counters;
    Policy policy;
    RedundancyPolicy redundancy;
    RootSynchronizer root_sync;
    ReachabilityMaps reachability;
    Suspicion suspicion;
    Departure departure;
    Failure failure;
    Rank named_loss = kNoRank;  // lost member, as a rank of the whole group: for log messages
    Slots slots;
    Ring<Collective> pending;  // operations that have no slot yet
    Notices notices;
    Turns turns;
    RoundTrip round_trip;
    Deadlines deadlines;
    std::vector<std::byte> bits;  // scratch bitmap of the NAK being built

    bool over() const { return phase == Phase::failed || phase == Phase::left; }
    bool idle() const { return slots.first_open() == slots.next() && pending.empty(); }
    // The caller has received the completion of every submitted operation.
    bool all_completed() const {
        return counters.operations_submitted == counters.operations_completed + counters.operations_failed;
    }
    Rank self() const { return config.self; }
    // Index of a rank among this member's children, or kMaxArity.
    std::uint32_t child_index(Rank rank) const;
    // Index of the packet's sender among this member's children; kMaxArity, and counted as unexpected_kind,
    // if the sender is not a child.
    std::uint32_t child_of(const wire::Header& header);

    // Slot of an operation that is at most a window away. Null, and counted, if the operation is over or too
    // far ahead.
    Slot* claim(OperationId operation);
    // The same for a message that may precede the post: a vacant slot becomes early.
    Slot* claim_early(OperationId operation);
    // Releases the slots of the operations below this one: all members have finished them, so no NAK for them
    // can come.
    void release_below(std::uint64_t operation);
    void finish(Slot& slot);
    // Completes the operation for the caller, and keeps a copy for repairs if a buffer is free.
    void finish_early(Slot& slot);
    // Takes over the loss of the whole group as reported by rank 0.
    void adopt_losses(const LossReport& group) {
        redundancy.adopt(group);
        counters.redundancy_changes = redundancy.changes();
    }
    // Ends the group and every operation with this error. inform: sends the failure to the other members;
    // false if the failure came from one of them.
    void fail(Rank lost, int error, bool inform = true);

    const SupplyGraph& graph() const { return reachability.latest(); }
    const SupplyGraph& graph_of(const Slot& slot) const { return reachability.of(number_of(slot.id)); }
    bool large(const Slot& slot) const { return config.large(slot.bytes); }
    bool is_root(const Slot& slot) const { return slot.operation.root == config.self; }
    // By the map of the operation, this member receives the root's multicasts.
    bool receives(const Slot& slot) const {
        return graph_of(slot).receives(slot.operation.root, config.self);
    }
    // The data may come by message without a NAK: small messages are sent to deaf members unsolicited, and
    // are forwarded along the ring under a repair mode with a silence factor above 1.
    bool comes_unsolicited(const Slot& slot) const {
        return !large(slot) && (!receives(slot) || slot.repair_mode.silence_factor > 1);
    }
    // This member is a leader that relays the operation's fragments to its range.
    bool relays(const Slot& slot) const {
        return slot.state >= SlotState::active && slot.operation.kind != CollectiveKind::reduce &&
               graph_of(slot).relays(slot.operation.root, config.self);
    }
    void mark(const Slot& slot) { turns.mark(number_of(slot.id)); }
    // Where the fragments are: a small message is always in the retransmit buffer; a large one is in the
    // caller's buffer, or in an early buffer until the operation is posted.
    std::byte* data_of(const Slot& slot) const;
    Bytes fragments_of(const Slot& slot, std::uint32_t from, std::uint32_t to) const;
    // The header's total field: length of the message, and whether the root lacks a part of the message.
    std::uint64_t announced_total(const Slot& slot) const;

    // Writes the effect that sends a message to a member; always returns true.
    bool message(Effect& effect, wire::Kind kind, Rank to, OperationId operation, std::uint32_t fragment = 0,
                 std::uint64_t total = 0, Bytes payload = {});
    // Writes the effect that multicasts a packet; always returns true.
    bool packet(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment = 0,
                std::uint64_t total = 0, Bytes payload = {});
    // Sets the effect's range to targets[next] and increments `next`. After the last target sets `next` to 0
    // and returns true.
    bool take_target(std::uint32_t& next, Effect& effect) const;

  private:
    void complete(OperationId operation, int status);
    void learn_from(const Slot& slot);
    void learn_losses(const Slot& slot);
    void write_header(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                      std::uint64_t total) const;
};

// Counts an input that is dropped and has no other effect.
inline void drop(std::uint64_t& why) {
    ++why;
}

// A flag in the total of each fragment says that the root does not have the whole message yet.
inline bool is_partial(const wire::Header& header) {
    return (header.total & wire::kPartialFlag) != 0;
}
inline std::uint64_t length_of(const wire::Header& header) {
    return header.total & ~(wire::kPartialFlag | wire::kRepeatFlag);
}
// The fragment was multicast before.
inline bool is_repeated(const wire::Header& header) {
    return (header.total & wire::kRepeatFlag) != 0;
}

}  // namespace mcastcoll::engine
