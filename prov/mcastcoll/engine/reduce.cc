// Vectors that are too long for a gather go up the same tree in pieces of as many whole elements as a
// fragment holds. Nothing is kept but in the callers' buffers: a parent grants its first child a window of
// pieces as soon as it has posted, and every further child what the one before it has had combined. So a
// piece is combined where it comes, straight from the message, and yet always in the same order; and the
// children work at the same time, each a little behind the one before it. A piece that is combined goes on up
// at once, and rank 0 multicasts the result as far as it is final.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/engine.h"

namespace mcastcoll::engine {

Result<void> Engine::check_reduction(const Collective& operation) const {
    const Combiner& combiner = operation.combiner;
    if (operation.root != rank_of(0)) return Error{EINVAL, "the root of a reduction is rank 0"};
    if (operation.bytes / config_.fragment_bytes >= UINT32_MAX / 4)
        return Error{EMSGSIZE, "the vector is too long"};
    if (operation.bytes == 0) return {};
    if (operation.buffer == nullptr || combiner.combine == nullptr)
        return Error{EINVAL, "a reduction needs a buffer and a combiner"};
    if (combiner.element_bytes == 0 || combiner.element_bytes > config_.fragment_bytes)
        return Error{EINVAL, "an element of a reduction has 1 byte to a fragment's"};
    if (operation.bytes % combiner.element_bytes != 0)
        return Error{EINVAL, "a reduction's vector has whole elements"};
    return {};
}

std::uint32_t Engine::own_pieces(const Slot& slot) const {
    const Collective& operation = slot.operation;
    if (operation.ready >= operation.bytes) return slot.pieces;
    return static_cast<std::uint32_t>(operation.ready / slot.piece_bytes);
}

// Leading pieces in which this member's whole subtree is combined.
std::uint32_t Engine::combined_pieces(const Slot& slot) const {
    return tree_children_.count == 0 ? own_pieces(slot) : slot.contributions[tree_children_.count - 1].base;
}

// In steps, so that credits stay few; but nobody that could send is left without.
void Engine::update_grants(Slot& slot) {
    std::uint32_t limit = own_pieces(slot);
    for (Contribution& child : slot.contributions) {
        const std::uint32_t to = std::min(limit, child.base + config_.window);
        limit = child.base;
        if (to <= child.granted) continue;
        const bool worth_it =
            to == slot.pieces || child.base == child.granted || to - child.granted >= config_.report_step();
        if (!worth_it) continue;
        child.granted = to;
        child.credit_due = true;
        mark_ready(slot);
    }
}

// More may be combined than before: up with it, or down.
void Engine::note_combined(Slot& slot, Nanoseconds now) {
    mark_ready(slot);
    if (slot.gather_sent || !slot.is_root(config_.self)) return;
    const std::uint32_t combined = combined_pieces(slot);
    if (combined == slot.pieces) {
        if (tree_children_.count == 0) take_own(slot);
        return all_gathered(slot, now);
    }
    if (!is_large(slot) || slot.operation.hold || tree_children_.count == 0) return;
    const std::uint64_t final_bytes = std::uint64_t{combined} * slot.piece_bytes;
    slot.base = std::max(slot.base, static_cast<std::uint32_t>(final_bytes / config_.fragment_bytes));
    update_report(slot);
}

// Pieces from `from` on, of this child.
void Engine::combine(Slot& slot, std::uint32_t child, std::uint32_t from, Bytes vector) {
    const Collective& operation = slot.operation;
    const std::size_t begin = std::size_t{from} * slot.piece_bytes;
    std::byte* at = operation.buffer + begin;
    if (child == 0 && operation.input != operation.buffer)
        std::memcpy(at, operation.input + begin, vector.size());
    if (reinterpret_cast<std::uintptr_t>(vector.data()) % kVectorAlignment == 0)
        return operation.combiner(at, vector.data(), vector.size());
    for (std::size_t done = 0; done < vector.size(); done += slot.piece_bytes) {
        const std::size_t bytes = std::min<std::size_t>(slot.piece_bytes, vector.size() - done);
        std::memcpy(piece_.data(), vector.data() + done, bytes);
        operation.combiner(at + done, piece_.data(), bytes);
    }
}

void Engine::on_contribution(const wire::Header& header, Bytes payload, Nanoseconds now) {
    const std::uint32_t index = child_index(header.sender);
    if (index == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state != SlotState::active) {  // nobody had a credit, or all is here
        ++(slot->state == SlotState::finished ? counters_.duplicates : counters_.unexpected_kind);
        return;
    }
    if (!agrees(*slot, header, now)) return;
    const std::uint32_t first = index_of(header.fragment);
    const std::uint64_t piece = slot->piece_bytes, bytes = slot->operation.bytes;
    if (slot->pieces == 0 || payload.empty() || first >= slot->pieces) {
        ++counters_.bad_fragment;
        return;
    }
    const std::uint64_t count = (payload.size() + piece - 1) / piece;
    // An element of another size there: nobody could ever finish.
    if (count > slot->pieces - first || payload.size() != std::min(count * piece, bytes - first * piece))
        return fail(kNoRank, EMSGSIZE, true, now);
    Contribution& child = slot->contributions[index];
    if (first + count > child.granted) {
        ++counters_.beyond_window;
        return;
    }
    ++counters_.contributions_received;
    const auto end = static_cast<std::uint32_t>(first + count);
    for (std::uint32_t from = first, to; from < end; from = to) {
        const bool is_new = from >= child.base && !child.have.test(from);
        for (to = from; to < end && (to >= child.base && !child.have.test(to)) == is_new; ++to)
            if (is_new) child.have.set(to);
        counters_.duplicates += is_new ? 0 : to - from;
        const std::size_t offset = (from - first) * piece;
        if (is_new)
            combine(*slot, index, from,
                    payload.subspan(offset, std::min((to - from) * piece, payload.size() - offset)));
    }
    for (; child.base < child.granted && child.have.test(child.base); ++child.base)
        child.have.clear(child.base);
    if (child.base == slot->pieces) slot->gathered |= 1U << index;
    slot->progress_at = now;
    check_gather(*slot, now);
}

void Engine::on_credit(const wire::Header& header, Nanoseconds now) {
    if (header.sender != tree_parent_) {
        ++counters_.unexpected_kind;
        return;
    }
    Slot* slot = claim(header.operation);
    if (slot == nullptr || slot->state == SlotState::finished) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (!agrees(*slot, header, now)) return;
    const std::uint32_t pieces = index_of(header.fragment);
    if (slot->state == SlotState::active && pieces > slot->pieces) {
        ++counters_.bad_fragment;
        return;
    }
    slot->credit = std::max(slot->credit, pieces);
    slot->progress_at = now;
    mark_ready(*slot);
}

// It could send, were it allowed to.
bool Engine::awaits_credit(const Slot& slot) const {
    return slot.state == SlotState::active && slot.pieces > 0 && tree_parent_ != kNoRank &&
           slot.contributed == slot.credit && slot.contributed < combined_pieces(slot);
}

// The parent may have posted something else, in which there are no credits: word of this vector tells it.
void Engine::announce(Slot& slot) {
    if (!awaits_credit(slot) || std::exchange(slot.announced, true)) return;
    slot.announce_due = true;
    mark_ready(slot);
}

bool Engine::next_contribution(Slot& slot, Effect& effect) {
    if (slot.state != SlotState::active || slot.pieces == 0 || tree_parent_ == kNoRank) return false;
    const std::uint32_t from = slot.contributed;
    const std::uint32_t longest =
        (config_.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes)) / slot.piece_bytes;
    const std::uint32_t to = std::min({slot.credit, combined_pieces(slot), from + longest});
    if (to <= from) return false;
    slot.contributed = to;
    ++counters_.contributions_sent;
    const std::uint64_t begin = std::uint64_t{from} * slot.piece_bytes;
    const std::uint64_t end = std::min(slot.operation.bytes, std::uint64_t{to} * slot.piece_bytes);
    make_message(effect, wire::Kind::contribution, tree_parent_, slot.id, from, vector_total(slot),
                 Bytes(contribution_of(slot) + begin, end - begin));
    if (to == slot.pieces && slot.operation.kind == CollectiveKind::reduce) finish(slot, 0);
    return true;
}

bool Engine::next_credit(Slot& slot, Effect& effect) {
    if (slot.state != SlotState::active) return false;
    for (std::uint32_t i = 0; i < tree_children_.count; ++i) {
        if (!std::exchange(slot.contributions[i].credit_due, false)) continue;
        ++counters_.credits_sent;
        make_message(effect, wire::Kind::credit, tree_children_.ranks[i], slot.id,
                     slot.contributions[i].granted, vector_total(slot), {});
        return true;
    }
    return false;
}

}  // namespace mcastcoll::engine
