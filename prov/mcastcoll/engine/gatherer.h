// Barriers and reductions. Every member's readiness, or vector, goes up the gather tree (4 children) to rank
// 0, which releases all members by a multicast that carries the result. The release is a broadcast, and a
// lost release is repaired like any fragment, from the ring predecessor. A `reduce` has no release: a member
// is done when it has sent its subtree's vector.
//
// Order: a member combines its own vector first, then the children's vectors in fixed order, whenever these
// arrive. The same input in the same group gives the same bits. The operator must be associative as far as
// the user cares; it need not be commutative in the order of the tree, which is not the rank order.
//
//     vector                            up                  down
//     none (barrier)                    gather              release, one datagram
//     up to gather_bytes (64 KiB at     inside the gather   as a broadcast
//       most, and at most a message)
//     longer                            pieces, by credit   fragments are multicast as soon as they are final
//
// Inside the gather: a vector is combined straight from the message if its child is next, and kept otherwise.
// Children send such vectors without a credit, so there is memory for a vector of each child in each slot (64
// KiB of addresses each, 32 MiB per group at an inner member, none at a leaf). The most recently used buffer
// is reused first, so the touched memory is bounded by the largest number of early vectors at a time. Each
// slot and child also has two bitmaps. Between the hosts of one site, the MPI component cuts longer vectors
// into parts of 64 KiB, each an operation of its own. Between sites, where each part would wait for a release
// across a long link, vectors go in pieces.
//
// Credits: pieces are combined in the caller's buffer, straight from the message; nothing is kept or
// allocated. A parent that has posted grants its first child a window of pieces, and each later child the
// pieces that are combined from the child before it. So the order is fixed, and yet the children send at the
// same time. Combined pieces go up at once. Credits are sent in steps of a quarter of a window.
//
// Buffers: leaves of the tree send from `input` and do not touch `buffer` before the result. Inner members
// need `buffer` for combining, also under `reduce`. `ready` and Engine::advance() give the ready prefix of
// the input.
//
// Hold: rank 0 of a barrier or allreduce posted with `hold` gets Effect::gathered when the result is in its
// buffer. Rank 0 may then change the buffer (combine the vectors of other sites), and Engine::release() lets
// the result go down. Before that, Engine::arrived() gives the combined prefix.
//
// Waiting: a member that waits for a child or a credit has the peer's process watched, and blames the peer
// when the stall timeout passes. A member that has waited for a credit for a watch delay announces this by a
// gather without a vector. If the parent has posted another operation, the parent ends the group with
// FI_EMSGSIZE, as on every disagreement (length, reduce or allreduce, size of the elements, a broadcast on
// one side).
#pragma once

#include "base/result.h"
#include "engine/flow_control.h"
#include "engine/supplier.h"

namespace mcastcoll::engine {

// Checks whether the engine can carry out this reduction.
Result<void> check_reduction(const GroupConfig& config, const Collective& operation);

class Gatherer {
  public:
    Gatherer(Core& core, FlowControl& flow, Supplier& supplier)
        : core_(core), flow_(flow), supplier_(supplier), piece_(core.config.fragment_bytes) {}

    void begin(Slot& slot);
    // A longer prefix of the input is ready.
    void advance(Slot& slot);
    void on_gather(const wire::Header& header, Bytes payload);
    void on_contribution(const wire::Header& header, Bytes payload);
    void on_credit(const wire::Header& header);
    // On rank 0: the held result is final. False if the operation is not held.
    bool release(Slot& slot);
    // On rank 0: length of the prefix of the buffer that has all members' vectors combined.
    std::uint64_t combined_bytes(const Slot& slot) const;
    // Children in the gather tree for whose contributions an operation waits.
    RankList missing(const Slot& slot) const;
    // Whether pieces are ready to be sent but wait for a credit from the parent.
    bool awaits_credit(const Slot& slot) const;
    // Called after a long wait for a credit: the parent may have posted another operation.
    void announce(Slot& slot);
    bool next_message(Slot& slot, Effect& effect) {
        return gathers(slot.operation.kind) && slot.state == SlotState::active && make_message(slot, effect);
    }

  private:
    std::uint64_t vector_total(const Slot& slot) const;
    bool agrees(Slot& slot, const wire::Header& header);
    bool combine_at_once(Slot& slot, std::uint32_t child, Bytes vector);
    void take_own(Slot& slot);
    void all_gathered(Slot& slot);
    void let_go(Slot& slot);
    const std::byte* contribution_of(const Slot& slot) const;
    bool make_message(Slot& slot, Effect& effect);
    bool next_gather(Slot& slot, Effect& effect);

    // Vectors in pieces.
    std::uint32_t own_pieces(const Slot& slot) const;
    std::uint32_t combined_pieces(const Slot& slot) const;
    void update_grants(Slot& slot);
    void note_combined(Slot& slot);
    void combine(Slot& slot, std::uint32_t child, std::uint32_t from, Bytes vector);
    bool next_contribution(Slot& slot, Effect& effect);
    bool next_credit(Slot& slot, Effect& effect);

    Core& core_;
    FlowControl& flow_;
    Supplier& supplier_;
    std::vector<std::byte> piece_;  // an aligned copy of a piece that is unaligned in its message
};

}  // namespace mcastcoll::engine
