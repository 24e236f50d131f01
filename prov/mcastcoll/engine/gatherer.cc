#include "engine/gatherer.h"

#include <cerrno>
#include <cstring>

namespace mcastcoll::engine {

// The total field on which all members must agree: length and kind.
std::uint64_t Gatherer::vector_total(const Slot& slot) const {
    const bool reduce = slot.operation.kind == CollectiveKind::reduce;
    return slot.operation.bytes | (reduce ? wire::kReduceFlag : 0);
}

// Whether the sender's operation matches the operation posted here, or the operation that members announced
// before the post. On a mismatch no member could finish, so the group fails.
bool Gatherer::agrees(Slot& slot, const wire::Header& header) {
    if ((header.total & ~wire::kReduceFlag) / core_.config.fragment_bytes >= UINT32_MAX / 4)
        return drop(core_.counters.bad_fragment), false;
    const bool posted = slot.state >= SlotState::active;
    if (!posted && slot.gathering.announced_total == kNothingAnnounced)
        slot.gathering.announced_total = header.total;
    const std::uint64_t known = posted ? vector_total(slot) : slot.gathering.announced_total;
    if (header.total == known && (!posted || gathers(slot.operation.kind))) return true;
    core_.fail(kNoRank, EMSGSIZE);
    return false;
}

void Gatherer::begin(Slot& slot) {
    if (slot.gathering.announced_total != kNothingAnnounced &&
        slot.gathering.announced_total != vector_total(slot))
        return core_.fail(kNoRank, EMSGSIZE);
    const std::uint64_t bytes = slot.operation.bytes;
    if (bytes > core_.config.max_gathered()) {
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
    Slot* slot = core_.claim_early(header.operation);
    if (slot == nullptr) return;
    if (!agrees(*slot, header)) return;
    const std::uint64_t bytes = header.total & ~wire::kReduceFlag;
    const bool whole = bytes <= core_.config.max_gathered();  // else the sender waits for a credit
    if (payload.size() != (whole ? bytes : 0)) return drop(core_.counters.bad_fragment);
    if (!whole || (slot->gathering.gathered >> child & 1) != 0) return;
    slot->gathering.gathered |= 1U << child;
    slot->progress_at = core_.now;
    if (bytes > 0 && !combine_at_once(*slot, child, payload)) {
        std::byte*& early = slot->gathering.contributions[child].early;
        early = core_.slots.vectors().take();
        std::memcpy(early, payload.data(), bytes);
    }
    if (slot->state == SlotState::active) advance(*slot);
}

// Combines straight from the message if this child is next.
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

// Copies this member's vector into the buffer in which the children's vectors are combined.
void Gatherer::take_own(Slot& slot) {
    if (std::exchange(slot.gathering.own_combined, true)) return;
    const Collective& operation = slot.operation;
    if (operation.bytes == 0 || operation.input == operation.buffer) return;
    if (core_.children.count > 0 || core_.is_root(slot))
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
        Slot::Contribution& contribution = slot.gathering.contributions[slot.gathering.combined];
        operation.combiner(operation.buffer, contribution.early, operation.bytes);
        core_.slots.vectors().give_back(contribution.early);
    }
    if (slot.gathering.combined < core_.children.count) return;
    if (core_.is_root(slot)) return all_gathered(slot);
    slot.gathering.sent = true;
    slot.gathering.due = true;
    core_.mark(slot);
}

// The vector to send up. A leaf combines nothing and sends from the input.
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

// On rank 0: the vectors of all members are in the buffer.
void Gatherer::all_gathered(Slot& slot) {
    slot.gathering.sent = true;
    if (slot.operation.kind == CollectiveKind::reduce) return core_.finish(slot);
    if (!slot.operation.hold) return let_go(slot);
    slot.gathering.awaits_release = core_.notices.gathered.push(slot.id);
}

bool Gatherer::release(Slot& slot) {
    if (!std::exchange(slot.gathering.awaits_release, false)) return false;
    slot.progress_at = core_.now;
    let_go(slot);
    return true;
}

// On rank 0: the result goes down as a broadcast. All members have posted the operation, else the gather
// would be incomplete.
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

Result<void> check_reduction(const GroupConfig& config, const Collective& operation) {
    const Combiner& combiner = operation.combiner;
    if (operation.root != rank_of(0)) return Error{EINVAL, "the root of a reduction must be rank 0"};
    if (operation.bytes / config.fragment_bytes >= UINT32_MAX / 4)
        return Error{EMSGSIZE, "the vector is too long"};
    if (operation.bytes == 0) return {};
    if (operation.buffer == nullptr || combiner.combine == nullptr)
        return Error{EINVAL, "a reduction needs a buffer and a combiner"};
    if (combiner.element_bytes == 0 || combiner.element_bytes > config.fragment_bytes)
        return Error{EINVAL, "an element of a reduction must have at least 1 byte and fit into a fragment"};
    if (operation.bytes % combiner.element_bytes != 0)
        return Error{EINVAL, "the vector of a reduction must consist of whole elements"};
    return {};
}

std::uint32_t Gatherer::own_pieces(const Slot& slot) const {
    const Collective& operation = slot.operation;
    if (operation.ready >= operation.bytes) return slot.gathering.pieces;
    return static_cast<std::uint32_t>(operation.ready / slot.gathering.piece_bytes);
}

// Number of leading pieces in which this member's whole subtree is combined.
std::uint32_t Gatherer::combined_pieces(const Slot& slot) const {
    return core_.children.count == 0 ? own_pieces(slot)
                                     : slot.gathering.contributions[core_.children.count - 1].base;
}

// Grants few, large credits, but never leaves a child without a credit for ready pieces.
void Gatherer::update_grants(Slot& slot) {
    std::uint32_t limit = own_pieces(slot);
    for (Slot::Contribution& child : slot.gathering.contributions) {
        const std::uint32_t to = std::min(limit, child.base + core_.config.window);
        limit = child.base;
        if (to <= child.granted) continue;
        const bool worth_it = to == slot.gathering.pieces || child.base == child.granted ||
                              to - child.granted >= core_.config.report_step(slot.gathering.pieces);
        if (!worth_it) continue;
        child.granted = to;
        child.credit_due = true;
        core_.mark(slot);
    }
}

// More pieces may be combined: this member sends them to its parent; rank 0 multicasts the prefix of which
// all pieces are combined.
void Gatherer::note_combined(Slot& slot) {
    core_.mark(slot);
    if (slot.gathering.sent || !core_.is_root(slot)) return;
    const std::uint32_t combined = combined_pieces(slot);
    if (combined == slot.gathering.pieces) {
        if (core_.children.count == 0) take_own(slot);
        return all_gathered(slot);
    }
    if (!core_.large(slot) || slot.operation.hold || core_.children.count == 0) return;
    const std::uint64_t final_bytes = std::uint64_t{combined} * slot.gathering.piece_bytes;
    slot.base = std::max(slot.base, static_cast<std::uint32_t>(final_bytes / core_.config.fragment_bytes));
    flow_.update(slot);
}

// Combines pieces from `from` on that came from this child.
void Gatherer::combine(Slot& slot, std::uint32_t child, std::uint32_t from, Bytes vector) {
    const Collective& operation = slot.operation;
    const std::size_t begin = std::size_t{from} * slot.gathering.piece_bytes;
    std::byte* at = operation.buffer + begin;
    const std::byte* before = child == 0 ? operation.input + begin : at;
    if (reinterpret_cast<std::uintptr_t>(vector.data()) % kVectorAlignment == 0)
        return operation.combiner(at, before, vector.data(), vector.size());
    for (std::size_t done = 0; done < vector.size(); done += slot.gathering.piece_bytes) {
        const std::size_t bytes = std::min<std::size_t>(slot.gathering.piece_bytes, vector.size() - done);
        std::memcpy(piece_.data(), vector.data() + done, bytes);
        operation.combiner(at + done, before + done, piece_.data(), bytes);
    }
}

void Gatherer::on_contribution(const wire::Header& header, Bytes payload) {
    const std::uint32_t index = core_.child_of(header);
    if (index == kMaxArity) return;
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state != SlotState::active) {  // no credit was granted yet, or all is here
        ++(slot->state == SlotState::finished ? core_.counters.duplicates : core_.counters.unexpected_kind);
        return;
    }
    if (!agrees(*slot, header)) return;
    const std::uint32_t first = index_of(header.fragment);
    const std::uint64_t piece = slot->gathering.piece_bytes, bytes = slot->operation.bytes;
    if (slot->gathering.pieces == 0 || payload.empty() || first >= slot->gathering.pieces)
        return drop(core_.counters.bad_fragment);
    const std::uint64_t count = (payload.size() + piece - 1) / piece;
    // The sender's elements have another size, so the operation could not finish.
    if (count > slot->gathering.pieces - first ||
        payload.size() != std::min(count * piece, bytes - first * piece))
        return core_.fail(kNoRank, EMSGSIZE);
    Slot::Contribution& child = slot->gathering.contributions[index];
    if (first + count > child.granted) return drop(core_.counters.beyond_window);
    ++core_.counters.contributions_received;
    const auto end = static_cast<std::uint32_t>(first + count);
    for (std::uint32_t from = first, to; from < end; from = to) {
        const bool is_new = from >= child.base && !child.have.test(from);
        for (to = from; to < end && (to >= child.base && !child.have.test(to)) == is_new; ++to)
            if (is_new) child.have.set(to);
        core_.counters.duplicates += is_new ? 0 : to - from;
        const std::size_t offset = (from - first) * piece;
        if (is_new)
            combine(*slot, index, from,
                    payload.subspan(offset, std::min((to - from) * piece, payload.size() - offset)));
    }
    for (; child.base < child.granted && child.have.test(child.base); ++child.base)
        child.have.clear(child.base);
    if (child.base == slot->gathering.pieces) slot->gathering.gathered |= 1U << index;
    slot->progress_at = core_.now;
    advance(*slot);
}

void Gatherer::on_credit(const wire::Header& header) {
    if (header.sender != core_.parent) return drop(core_.counters.unexpected_kind);
    Slot* slot = core_.claim_early(header.operation);
    if (slot == nullptr || slot->state == SlotState::finished) return;
    if (!agrees(*slot, header)) return;
    const std::uint32_t pieces = index_of(header.fragment);
    if (slot->state == SlotState::active && pieces > slot->gathering.pieces)
        return drop(core_.counters.bad_fragment);
    slot->gathering.credit = std::max(slot->gathering.credit, pieces);
    slot->progress_at = core_.now;
    core_.mark(*slot);
}

bool Gatherer::awaits_credit(const Slot& slot) const {
    return slot.state == SlotState::active && slot.gathering.pieces > 0 && core_.parent != kNoRank &&
           slot.gathering.contributed == slot.gathering.credit &&
           slot.gathering.contributed < combined_pieces(slot);
}

void Gatherer::announce(Slot& slot) {
    if (!awaits_credit(slot) || std::exchange(slot.gathering.announced, true)) return;
    slot.gathering.announce_due = true;
    core_.mark(slot);
}

bool Gatherer::next_contribution(Slot& slot, Effect& effect) {
    if (core_.parent == kNoRank) return false;
    const std::uint32_t from = slot.gathering.contributed;
    const std::uint32_t longest =
        (core_.config.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes)) /
        slot.gathering.piece_bytes;
    const std::uint32_t to = std::min({slot.gathering.credit, combined_pieces(slot), from + longest});
    if (to <= from) return false;
    slot.gathering.contributed = to;
    ++core_.counters.contributions_sent;
    const std::uint64_t begin = std::uint64_t{from} * slot.gathering.piece_bytes;
    const std::uint64_t end = std::min(slot.operation.bytes, std::uint64_t{to} * slot.gathering.piece_bytes);
    core_.message(effect, wire::Kind::contribution, core_.parent, slot.id, from, vector_total(slot),
                  Bytes(contribution_of(slot) + begin, end - begin));
    if (to == slot.gathering.pieces && slot.operation.kind == CollectiveKind::reduce) core_.finish(slot);
    return true;
}

bool Gatherer::next_credit(Slot& slot, Effect& effect) {
    for (std::uint32_t i = 0; i < core_.children.count; ++i) {
        if (!std::exchange(slot.gathering.contributions[i].credit_due, false)) continue;
        ++core_.counters.credits_sent;
        return core_.message(effect, wire::Kind::credit, core_.children.ranks[i], slot.id,
                             slot.gathering.contributions[i].granted, vector_total(slot));
    }
    return false;
}

}  // namespace mcastcoll::engine
