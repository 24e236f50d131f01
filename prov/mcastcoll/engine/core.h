// Core: what the parts of an engine share (README.md: The parts). Nothing in here calls a part: what follows
// from a call for others is noted as `unsettled`, and the engine sees to it when the call is done.
#pragma once

#include "engine/ballots.h"
#include "engine/deadlines.h"
#include "engine/doubts.h"
#include "engine/outcome.h"
#include "engine/redundancy.h"

namespace mcastcoll::engine {

struct Core {
    explicit Core(const GroupConfig& config);
    Core(const Core&) = delete;  // its parts know each other, and the engine's it

    const GroupConfig config;
    const RankList children;  // in the tree of gathers, watermarks and leaving
    const Rank parent;
    const std::vector<std::uint32_t> targets;  // ranges that somebody else listens to
    Nanoseconds now{};                         // of the call being served
    Phase phase = Phase::forming;
    bool unsettled = false;
    std::uint64_t kept_bytes = 0;  // of all small messages that were finished here
    Nanoseconds moved_at{};        // when an operation last began or ended here, or the watermark rose
    Nanoseconds stalls_from{};     // what stood still before counts from then; kNever: nothing counts yet
    Counters counters;
    Policy policy;
    RedundancyPolicy redundancy;
    RootSynchronizer root_sync;
    Verdicts verdicts;
    Doubts doubts;
    Departure departure;
    Failure failure;
    Rank named_loss = kNoRank;  // who was lost, as the group counts its members: for people
    Slots slots;
    Ring<Collective> pending;  // operations that have no slot yet
    Notices notices;
    Turns turns;
    RoundTrip round_trip;
    Deadlines deadlines;
    std::vector<std::byte> bits;  // of the question that is being asked

    bool over() const { return phase == Phase::failed || phase == Phase::left; }
    bool idle() const { return slots.first_open() == slots.next() && pending.empty(); }
    // The caller knows of the end of all that it has submitted.
    bool all_told() const {
        return counters.operations_submitted == counters.operations_completed + counters.operations_failed;
    }
    Rank self() const { return config.self; }
    // The position of a rank among this member's children; kMaxArity when it is none of them.
    std::uint32_t child_index(Rank rank) const;
    // That of the sender; kMaxArity, counted, when this member has no such child.
    std::uint32_t child_of(const wire::Header& header);

    // Operations. The slot of one that is at most a window away, or null, counted, when it is over or too far
    // ahead.
    Slot* claim(OperationId operation);
    // The same, of one that something has come for, posted or not.
    Slot* hear_of(OperationId operation);
    // Everybody has finished all below: nobody can ask for them any more.
    void release_below(std::uint64_t operation);
    void finish(Slot& slot);
    // Ends it for the caller, and serves others from a copy, if there is room for one.
    void finish_early(Slot& slot);
    // What the whole group loses is told anew.
    void adopt_losses(const LossReport& group) {
        redundancy.adopt(group);
        counters.redundancy_changes = redundancy.changes();
    }
    // Ends the group, and every operation, with this error. tell: the others may not know.
    void fail(Rank lost, int error, bool tell = true);

    const SupplyGraph& graph() const { return verdicts.latest(); }
    const SupplyGraph& graph_of(const Slot& slot) const { return verdicts.of(number_of(slot.id)); }
    bool large(const Slot& slot) const { return config.large(slot.bytes); }
    // This member is its root, or is to hear its root's multicasts.
    bool is_root(const Slot& slot) const { return slot.operation.root == config.self; }
    bool hears(const Slot& slot) const { return graph_of(slot).hears(slot.operation.root, config.self); }
    // Small messages are handed to the deaf, and by a policy that is patient because of it.
    bool comes_unasked(const Slot& slot) const {
        return !large(slot) && (!hears(slot) || slot.plan.patience > 1);
    }
    // This member multicasts onward what it has of it.
    bool relays(const Slot& slot) const {
        return slot.state >= SlotState::active && slot.operation.kind != CollectiveKind::reduce &&
               graph_of(slot).relays(slot.operation.root, config.self);
    }
    void mark(const Slot& slot) { turns.mark(number_of(slot.id)); }
    // Where its fragments are: small ones always in the retransmit buffer, large ones in the caller's buffer,
    // or in an early buffer until there is one.
    std::byte* data_of(const Slot& slot) const;
    Bytes fragments_of(const Slot& slot, std::uint32_t from, std::uint32_t to) const;
    // What a fragment says of its message's length, and of its root.
    std::uint64_t announced_total(const Slot& slot) const;

    // True: there is an effect.
    bool message(Effect& effect, wire::Kind kind, Rank to, OperationId operation, std::uint32_t fragment = 0,
                 std::uint64_t total = 0, Bytes payload = {});
    bool packet(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment = 0,
                std::uint64_t total = 0, Bytes payload = {});
    // The next of the addresses that a datagram goes to; true when it is the last of them.
    bool take_target(std::uint32_t& next, Effect& effect) const;

  private:
    void complete(OperationId operation, int status);
    void learn_from(const Slot& slot);
    void learn_losses(const Slot& slot);
    void write_header(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                      std::uint64_t total) const;
};

// Something that came is dropped: counted, and nothing else.
inline void drop(std::uint64_t& why) {
    ++why;
}

// While its root lacks something, fragments of a message carry a flag.
inline bool is_partial(const wire::Header& header) {
    return (header.total & wire::kPartialFlag) != 0;
}
inline std::uint64_t length_of(const wire::Header& header) {
    return header.total & ~(wire::kPartialFlag | wire::kRepeatFlag);
}
// It is not the first multicast of a fragment.
inline bool is_repeated(const wire::Header& header) {
    return (header.total & wire::kRepeatFlag) != 0;
}

}  // namespace mcastcoll::engine
