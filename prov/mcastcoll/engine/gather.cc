// Barriers and reductions. Everybody's word, and its vector, is gathered up a tree of messages to rank 0, who
// releases everybody by multicast. The release is a broadcast of the result (of no bytes after a barrier), so
// that what is lost of it is repaired like any other fragment. A reduce has none: it ends with the gather.
//
// A member combines its own vector first, then its children's in their order, whenever they come: the result
// depends on the tree and not on time. Vectors that a message holds travel inside the gather, and one that
// comes too early is kept; reduce.cc has the longer ones.
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/engine.h"

namespace mcastcoll::engine {

// What the members must agree about.
std::uint64_t Engine::vector_total(const Slot& slot) const {
    const bool reduce = slot.operation.kind == CollectiveKind::reduce;
    return slot.operation.bytes | (reduce ? wire::kReduceFlag : 0);
}

// Whether the sender means the operation that was posted here, or that others have told of before the post.
// If not, nobody could ever finish.
bool Engine::agrees(Slot& slot, const wire::Header& header, Nanoseconds now) {
    if ((header.total & ~wire::kReduceFlag) / config_.fragment_bytes >= UINT32_MAX / 4) {
        ++counters_.bad_fragment;
        return false;
    }
    const bool posted = slot.state >= SlotState::active;
    if (!posted && slot.told == kNothingTold) slot.told = header.total;
    const std::uint64_t known = posted ? vector_total(slot) : slot.told;
    if (header.total == known && (!posted || gathers(slot.operation.kind))) return true;
    fail(kNoRank, EMSGSIZE, true, now);
    return false;
}

void Engine::begin_gather(Slot& slot, Nanoseconds now) {
    if (slot.told != kNothingTold && slot.told != vector_total(slot))
        return fail(kNoRank, EMSGSIZE, true, now);
    const std::uint64_t bytes = slot.operation.bytes;
    if (bytes > config_.most_gathered()) {
        slot.piece_bytes = config_.piece_bytes(slot.operation.combiner.element_bytes);
        slot.pieces = static_cast<std::uint32_t>((bytes + slot.piece_bytes - 1) / slot.piece_bytes);
        slot.credit = std::min(slot.credit, slot.pieces);
    }
    check_gather(slot, now);
}

void Engine::on_gather(const wire::Header& header, Bytes payload, Nanoseconds now) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (!agrees(*slot, header, now)) return;
    const std::uint64_t bytes = header.total & ~wire::kReduceFlag;
    const bool whole = bytes <= config_.most_gathered();  // else it only says that it waits for a credit
    if (payload.size() != (whole ? bytes : 0)) {
        ++counters_.bad_fragment;
        return;
    }
    if (!whole || (slot->gathered >> child & 1) != 0) return;
    slot->gathered |= 1U << child;
    slot->progress_at = now;
    if (bytes > 0 && !combine_at_once(*slot, child, payload))
        keep_vector(slot->contributions[child], payload);
    if (slot->state == SlotState::active) check_gather(*slot, now);
}

// Straight from the message, where it is this child's turn.
bool Engine::combine_at_once(Slot& slot, std::uint32_t child, Bytes vector) {
    const Collective& operation = slot.operation;
    if (slot.state != SlotState::active || slot.combined != child || operation.ready < operation.bytes ||
        reinterpret_cast<std::uintptr_t>(vector.data()) % kVectorAlignment != 0)
        return false;
    take_own(slot);
    operation.combiner(operation.buffer, vector.data(), vector.size());
    ++slot.combined;
    return true;
}

void Engine::keep_vector(Contribution& contribution, Bytes vector) {
    contribution.early = vectors_.take();
    std::memcpy(contribution.early, vector.data(), vector.size());
}

// This member's vector comes into the buffer where others are combined with it.
void Engine::take_own(Slot& slot) {
    if (std::exchange(slot.own_combined, true)) return;
    const Collective& operation = slot.operation;
    if (operation.bytes == 0 || operation.input == operation.buffer) return;
    if (tree_children_.count > 0 || slot.is_root(config_.self))
        std::memcpy(operation.buffer, operation.input, operation.bytes);
}

// Something came for it.
void Engine::check_gather(Slot& slot, Nanoseconds now) {
    const Collective& operation = slot.operation;
    if (slot.pieces > 0) {
        update_grants(slot);
        return note_combined(slot, now);
    }
    if (slot.gather_sent || operation.ready < operation.bytes) return;
    take_own(slot);
    for (; slot.combined < tree_children_.count && (slot.gathered >> slot.combined & 1) != 0;
         ++slot.combined) {
        if (operation.bytes == 0) continue;
        Contribution& contribution = slot.contributions[slot.combined];
        operation.combiner(operation.buffer, contribution.early, operation.bytes);
        vectors_.give_back(contribution.early);
    }
    if (slot.combined < tree_children_.count) return;
    if (slot.is_root(config_.self)) return all_gathered(slot, now);
    slot.gather_sent = true;
    slot.gather_due = true;
    mark_ready(slot);
}

// What goes up from here: where nothing is combined, nothing is copied.
const std::byte* Engine::contribution_of(const Slot& slot) const {
    return tree_children_.count == 0 ? slot.operation.input : slot.operation.buffer;
}

bool Engine::next_gather(Slot& slot, Effect& effect) {
    if (slot.state != SlotState::active) return false;
    const bool due = std::exchange(slot.gather_due, false),
               announces = std::exchange(slot.announce_due, false);
    if (!due && !announces) return false;
    ++counters_.gathers_sent;
    make_message(effect, wire::Kind::gather, tree_parent_, slot.id, 0, vector_total(slot),
                 due ? Bytes(contribution_of(slot), slot.operation.bytes) : Bytes{});
    if (due && slot.operation.kind == CollectiveKind::reduce) finish(slot, 0);
    return true;
}

// As rank 0: everybody's vector is in the buffer.
void Engine::all_gathered(Slot& slot, Nanoseconds now) {
    slot.gather_sent = true;
    if (slot.operation.kind == CollectiveKind::reduce) return finish(slot, 0);
    if (!slot.operation.hold) return let_go(slot, now);
    slot.awaits_release = notices_.gathered(slot.id);
}

bool Engine::release(OperationId operation, Nanoseconds now) {
    now_ = now;
    if (phase_ != Phase::active) return false;
    Slot* slot = slots_.find_active(operation);
    if (slot == nullptr || !std::exchange(slot->awaits_release, false)) return false;
    slot->progress_at = now;
    let_go(*slot, now);
    return true;
}

// As rank 0: the result goes down as a broadcast. Everybody has posted it, or nobody could have gathered it.
void Engine::let_go(Slot& slot, Nanoseconds now) {
    if (!is_large(slot) && slot.bytes > 0)
        std::memcpy(slot.retransmit_buffer.data(), slot.operation.buffer, slot.bytes);
    slot.base = slot.fragments;
    on_all_here(slot, now);
}

// As rank 0: how much of the buffer, from its start, has everybody's vector in it.
std::uint64_t Engine::combined_bytes(const Slot& slot) const {
    if (slot.pieces == 0 || tree_children_.count == 0) return slot.gather_sent ? slot.operation.bytes : 0;
    return std::min(slot.operation.bytes, std::uint64_t{combined_pieces(slot)} * slot.piece_bytes);
}

}  // namespace mcastcoll::engine
