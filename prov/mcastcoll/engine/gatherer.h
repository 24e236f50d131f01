// Barriers and reductions (README.md). Everybody's word, and its vector, is gathered up a tree of messages to
// rank 0, who releases everybody by a broadcast of the result. A member combines its own vector first, then
// its children's in their order, whenever they come: the result depends on the tree and not on time.
#pragma once

#include "base/result.h"
#include "engine/supplier.h"

namespace mcastcoll::engine {

// Whether a reduction can be carried out.
Result<void> check_reduction(const GroupConfig& config, const Collective& operation);

class Gatherer {
  public:
    Gatherer(Core& core, FlowControl& flow, Supplier& supplier)
        : core_(core), flow_(flow), supplier_(supplier), piece_(core.config.fragment_bytes) {}

    void begin(Slot& slot);
    // More of the input is ready.
    void advance(Slot& slot);
    void on_gather(const wire::Header& header, Bytes payload);
    void on_contribution(const wire::Header& header, Bytes payload);
    void on_credit(const wire::Header& header);
    // As rank 0: the held result is as everybody is to have it. False: it does not wait for that.
    bool release(Slot& slot);
    // As rank 0: how much of the buffer, from its start, has everybody's vector in it.
    std::uint64_t combined_bytes(const Slot& slot) const;
    // Children in the gather tree that an operation waits for; and whether it could send, were it allowed to.
    RankList missing(const Slot& slot) const;
    bool awaits_credit(const Slot& slot) const;
    // It has waited for long: the parent may have posted something else.
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

    // In pieces.
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
    std::vector<std::byte> piece_;  // one, where a message has it at an address that is not aligned
};

}  // namespace mcastcoll::engine
