#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/gatherer.h"

namespace mcastcoll::engine {

// What the members must agree about.
std::uint64_t Gatherer::vector_total(const Slot& slot) const {
    const bool reduce = slot.operation.kind == CollectiveKind::reduce;
    return slot.operation.bytes | (reduce ? wire::kReduceFlag : 0);
}

// Whether the sender means the operation that was posted here, or that others have told of before the post.
// If not, nobody could ever finish.
bool Gatherer::agrees(Slot& slot, const wire::Header& header) {
    if ((header.total & ~wire::kReduceFlag) / core_.config.fragment_bytes >= UINT32_MAX / 4) {
        ++core_.counters.bad_fragment;
        return false;
    }
    const bool posted = slot.state >= SlotState::active;
    if (!posted && slot.gathering.told == kNothingTold) slot.gathering.told = header.total;
    const std::uint64_t known = posted ? vector_total(slot) : slot.gathering.told;
    if (header.total == known && (!posted || gathers(slot.operation.kind))) return true;
    core_.fail(kNoRank, EMSGSIZE);
    return false;
}

void Gatherer::begin(Slot& slot) {
    if (slot.gathering.told != kNothingTold && slot.gathering.told != vector_total(slot))
        return core_.fail(kNoRank, EMSGSIZE);
    const std::uint64_t bytes = slot.operation.bytes;
    if (bytes > core_.config.most_gathered()) {
        slot.gathering.piece_bytes = core_.config.piece_bytes(slot.operation.combiner.element_bytes);
        slot.gathering.pieces =
            static_cast<std::uint32_t>((bytes + slot.gathering.piece_bytes - 1) / slot.gathering.piece_bytes);
        slot.gathering.credit = std::min(slot.gathering.credit, slot.gathering.pieces);
    }
    advance(slot);
}

void Gatherer::on_gather(const wire::Header& header, Bytes payload) {
    const std::uint32_t child = core_.child_of(header);
    if (child == kMaxArity) return;
    Slot* slot = core_.hear_of(header.operation);
    if (slot == nullptr) return;
    if (!agrees(*slot, header)) return;
    const std::uint64_t bytes = header.total & ~wire::kReduceFlag;
    const bool whole = bytes <= core_.config.most_gathered();  // else it only says that it waits for a credit
    if (payload.size() != (whole ? bytes : 0)) {
        ++core_.counters.bad_fragment;
        return;
    }
    if (!whole || (slot->gathering.gathered >> child & 1) != 0) return;
    slot->gathering.gathered |= 1U << child;
    slot->progress_at = core_.now;
    if (bytes > 0 && !combine_at_once(*slot, child, payload))
        keep_vector(slot->gathering.contributions[child], payload);
    if (slot->state == SlotState::active) advance(*slot);
}

// Straight from the message, where it is this child's turn.
bool Gatherer::combine_at_once(Slot& slot, std::uint32_t child, Bytes vector) {
    const Collective& operation = slot.operation;
    if (slot.state != SlotState::active || slot.gathering.combined != child ||
        operation.ready < operation.bytes ||
        reinterpret_cast<std::uintptr_t>(vector.data()) % kVectorAlignment != 0)
        return false;
    take_own(slot);
    operation.combiner(operation.buffer, vector.data(), vector.size());
    ++slot.gathering.combined;
    return true;
}

void Gatherer::keep_vector(Contribution& contribution, Bytes vector) {
    contribution.early = core_.slots.vectors().take();
    std::memcpy(contribution.early, vector.data(), vector.size());
}

// This member's vector comes into the buffer where others are combined with it.
void Gatherer::take_own(Slot& slot) {
    if (std::exchange(slot.gathering.own_combined, true)) return;
    const Collective& operation = slot.operation;
    if (operation.bytes == 0 || operation.input == operation.buffer) return;
    if (core_.children.count > 0 || slot.is_root(core_.config.self))
        std::memcpy(operation.buffer, operation.input, operation.bytes);
}

void Gatherer::advance(Slot& slot) {
    const Collective& operation = slot.operation;
    if (slot.gathering.pieces > 0) {
        update_grants(slot);
        return note_combined(slot);
    }
    if (slot.gathering.sent || operation.ready < operation.bytes) return;
    take_own(slot);
    for (; slot.gathering.combined < core_.children.count &&
           (slot.gathering.gathered >> slot.gathering.combined & 1) != 0;
         ++slot.gathering.combined) {
        if (operation.bytes == 0) continue;
        Contribution& contribution = slot.gathering.contributions[slot.gathering.combined];
        operation.combiner(operation.buffer, contribution.early, operation.bytes);
        core_.slots.vectors().give_back(contribution.early);
    }
    if (slot.gathering.combined < core_.children.count) return;
    if (slot.is_root(core_.config.self)) return all_gathered(slot);
    slot.gathering.sent = true;
    slot.gathering.due = true;
    core_.mark(slot);
}

// What goes up from here: where nothing is combined, nothing is copied.
const std::byte* Gatherer::contribution_of(const Slot& slot) const {
    return core_.children.count == 0 ? slot.operation.input : slot.operation.buffer;
}

RankList Gatherer::missing(const Slot& slot) const {
    RankList ranks;
    for (std::uint32_t i = 0; i < core_.children.count && gathers(slot.operation.kind); ++i)
        if ((slot.gathering.gathered >> i & 1) == 0) ranks.add(core_.children.ranks[i]);
    return ranks;
}

bool Gatherer::make_message(Slot& slot, Effect& effect) {
    return next_gather(slot, effect) ||
           (slot.gathering.pieces > 0 && (next_credit(slot, effect) || next_contribution(slot, effect)));
}

bool Gatherer::next_gather(Slot& slot, Effect& effect) {
    const bool due = std::exchange(slot.gathering.due, false),
               announces = std::exchange(slot.gathering.announce_due, false);
    if (!due && !announces) return false;
    ++core_.counters.gathers_sent;
    core_.message(effect, wire::Kind::gather, core_.parent, slot.id, 0, vector_total(slot),
                  due ? Bytes(contribution_of(slot), slot.operation.bytes) : Bytes{});
    if (due && slot.operation.kind == CollectiveKind::reduce) core_.finish(slot);
    return true;
}

// As rank 0: everybody's vector is in the buffer.
void Gatherer::all_gathered(Slot& slot) {
    slot.gathering.sent = true;
    if (slot.operation.kind == CollectiveKind::reduce) return core_.finish(slot);
    if (!slot.operation.hold) return let_go(slot);
    slot.gathering.awaits_release = core_.notices.gathered(slot.id);
}

bool Gatherer::release(Slot& slot) {
    if (!std::exchange(slot.gathering.awaits_release, false)) return false;
    slot.progress_at = core_.now;
    let_go(slot);
    return true;
}

// As rank 0: the result goes down as a broadcast. Everybody has posted it, or nobody could have gathered it.
void Gatherer::let_go(Slot& slot) {
    if (!core_.large(slot) && slot.bytes > 0)
        std::memcpy(core_.slots.buffer(slot), slot.operation.buffer, slot.bytes);
    slot.base = slot.fragments;
    supplier_.on_all_here(slot);
}

std::uint64_t Gatherer::combined_bytes(const Slot& slot) const {
    if (slot.gathering.pieces == 0 || core_.children.count == 0)
        return slot.gathering.sent ? slot.operation.bytes : 0;
    return std::min(slot.operation.bytes, std::uint64_t{combined_pieces(slot)} * slot.gathering.piece_bytes);
}

}  // namespace mcastcoll::engine
