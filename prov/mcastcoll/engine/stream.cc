// A root that has only a prefix of its message yet, because another level of the hierarchy brings it bit by
// bit (cut-through), and the other end of the same: what prefix a receiver may pass on.
//
// A large message is multicast, handed on and answered as far as it is ready; what is asked for beyond is
// remembered like every question that comes too early. A small one is held until all is there. While its root
// lacks something, fragments carry a flag: receivers then take silence for waiting, and ask for one fragment
// instead of a window.
#include <algorithm>
#include <cstring>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::advance(OperationId operation, std::uint64_t ready, Nanoseconds now) {
    now_ = now;
    if (phase_ == Phase::failed || phase_ == Phase::left) return;
    if (const std::uint64_t number = number_of(operation); number >= slots_.next()) {
        const std::uint64_t behind = number - slots_.next();
        if (behind < pending_.size()) pending_.at(behind).ready = std::max(pending_.at(behind).ready, ready);
        return;
    }
    Slot* slot = slots_.find_active(operation);
    if (slot == nullptr || slot->operation.ready >= ready) return;
    slot->operation.ready = ready;
    slot->progress_at = now;
    if (reduces(slot->operation.kind)) return check_gather(*slot, now);
    if (slot->operation.kind == CollectiveKind::broadcast && slot->is_root(config_.self))
        advance_root(*slot, now);
}

// As root of a broadcast: what is ready becomes what is here.
void Engine::advance_root(Slot& slot, Nanoseconds now) {
    const std::uint64_t ready = std::min(slot.operation.ready, slot.bytes);
    const bool all = ready == slot.bytes;
    if (!is_large(slot)) {
        if (!all) return;
        if (slot.bytes > 0) std::memcpy(slot.retransmit_buffer.data(), slot.operation.buffer, slot.bytes);
        slot.retained = true;
    }
    const std::uint32_t base =
        all ? slot.fragments : static_cast<std::uint32_t>(ready / config_.fragment_bytes);
    if (base <= slot.base) return;
    slot.base = base;
    slot.progress_at = now;
    mark_ready(slot);
    if (all)
        on_all_here(slot, now);
    else
        update_report(slot);
    release_holds(now);
}

// A small broadcast that its root has not got all of. Others of the same root stay behind it.
bool Engine::awaits_bytes(const Slot& slot) const {
    return slot.state == SlotState::active && !is_large(slot) && !slot.complete_here();
}

std::uint64_t Engine::arrived(OperationId operation) const {
    if (!slots_.posted(operation)) return 0;
    const Slot& slot = slots_.at(number_of(operation));
    if (reduces(slot.operation.kind) && slot.is_root(config_.self)) return combined_bytes(slot);
    if (slot.complete_here()) return slot.bytes;
    return is_large(slot) ? std::uint64_t{slot.base} * config_.fragment_bytes : 0;
}

// What a fragment says of its message's length, and of its root.
std::uint64_t Engine::announced_total(const Slot& slot) const {
    const bool root = slot.state >= SlotState::active && slot.is_root(config_.self);
    const bool partial = root ? !slot.complete_here() : slot.partial;
    return slot.bytes | (partial ? wire::kPartialFlag : 0);
}

// Fragments overtake each other: a root that once had everything has it.
void Engine::note_partial(Slot& slot, bool partial) {
    slot.whole |= !partial;
    slot.partial = !slot.whole;
}

}  // namespace mcastcoll::engine
