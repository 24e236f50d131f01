// Repair by the root (LA-MPI's broadcast over Quadrics: Yu, Sur, Panda, Aulwes, Graham 2005). A receiver that
// lacks something tells its parent in the report tree (NACK), who passes on at once what it has not passed on
// within the last deadline, so that the root hears of every fragment once, whatever the number of those that
// lack it. The root multicasts it again; who has it counts a duplicate.
//
// Under the sync policy operation n uses channel n mod K, and a channel is used again when everybody has
// finished the operation before. That acknowledgement is the checkpoint of checkpoint.cc, with every = K;
// only its verdict is multicast. Who waits for it in vain asks its parent in the tree.
#include <algorithm>

#include "engine/engine.h"

namespace mcastcoll::engine {
namespace {

// Rounds without any gain after which the ring supplier is asked instead.
constexpr std::uint32_t kFruitlessRounds = 2;

}  // namespace

// What another multicast usually takes.
Nanoseconds Engine::nack_delay(const Slot& slot) const {
    std::int64_t hops = 3;  // the last one down, and some patience
    for (Rank rank = slot.report_to; rank != kNoRank && rank != slot.operation.root; ++hops)
        rank = graph_of(slot).report_parent(slot.operation.root, rank, config_.tree_arity);
    return deadlines_.nack(hops);
}

bool Engine::asks_root(const Slot& slot) const {
    return slot.plan.route == Route::root && slot.report_to != kNoRank && !slot.chained &&
           slot.nacks.rounds < kFruitlessRounds;
}

void Engine::forget_said(Nacks& nacks, Nanoseconds now) {
    if (nacks.said_until > now) return;
    nacks.said.clear_all();
    nacks.said_until = kNever;
}

// Asks for what is missing below `to`; the timer comes back to it when another multicast should have come.
void Engine::nack(Slot& slot, std::uint32_t to, Nanoseconds now) {
    Nacks& nacks = slot.nacks;
    forget_said(nacks, now);
    if (nacks.said_until == kNever) nacks.said_until = now + nack_delay(slot);
    const bool gained = nacks.answer_by == kNever || slot.base > nacks.base;
    if (gained) nacks.rounds = 0;
    if (!gained && now >= nacks.answer_by && ++nacks.rounds >= kFruitlessRounds)
        return ask_supplier(slot, now);
    if (gained || now >= nacks.answer_by) {
        nacks.base = slot.base;
        nacks.asked_at = now;
        nacks.answer_by = now + nack_delay(slot);
    }
    for (std::uint32_t index = slot.base; index < to; ++index)
        if (!slot.has(index)) nacks.add(index);
    slot.ask_at = nacks.answer_by;
    mark_ready(slot);
}

// From a child in the report tree. The root's own multicast may still be to come: only what it has sent is
// sent again.
void Engine::on_nack(const wire::Header& header, Bytes payload, Nanoseconds now) {
    ++counters_.nacks_received;
    const std::uint64_t root = header.total;
    if (root >= config_.members || payload.size() > ask_bytes_.size()) {
        ++counters_.bad_sender;
        return;
    }
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    const Rank top = rank_of(root);
    const bool self_is_top = top == config_.self;
    const bool posted = slot->state >= SlotState::active;
    if ((posted && slot->operation.root != top) ||
        (!self_is_top && !graph_of(*slot).hears(top, config_.self))) {
        ++counters_.bad_sender;
        return;
    }
    if (self_is_top && (!posted || (slot->state == SlotState::finished && !slot->retained))) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (self_is_top) slot->troubled = true;
    if (Client* client = slot->find_client(header.sender)) client->asked = true;
    Nacks& nacks = slot->nacks;
    forget_said(nacks, now);
    if (nacks.said_until == kNever) nacks.said_until = now + round_trip_.mean();
    const std::uint32_t from = index_of(header.fragment);
    for (std::uint32_t i = 0; i < payload.size() * 8; ++i) {
        if ((std::to_integer<unsigned>(payload[i / 8]) >> (i % 8) & 1) == 0) continue;
        if (i > UINT32_MAX - 1 - from) break;
        const std::uint32_t index = from + i;
        if (self_is_top && (index >= slot->next_multicast || index < slot->acknowledged)) continue;
        if (!nacks.add(index)) break;
    }
    slot->nack_root = top;
    mark_ready(*slot);
}

// What this member was told or lacks itself, one step up the tree.
bool Engine::next_nack(Slot& slot, Effect& effect) {
    Nacks& nacks = slot.nacks;
    if (!nacks.pending()) return false;
    const Rank top = slot.state >= SlotState::active ? slot.operation.root : slot.nack_root;
    if (top == config_.self) return false;  // next_fragment() sees to it
    const Rank to = graph_of(slot).report_parent(top, config_.self, config_.tree_arity);
    const std::uint32_t from = nacks.from, end = nacks.to;
    std::fill(ask_bytes_.begin(), ask_bytes_.end(), std::byte{0});
    for (std::uint32_t at = nacks.due.find_set(from, end); at < end; at = nacks.due.find_set(at + 1, end)) {
        ask_bytes_[(at - from) / 8] |= static_cast<std::byte>(1U << ((at - from) % 8));
        nacks.due.clear(at);
        nacks.said.set(at);
    }
    nacks.from = nacks.to = 0;
    if (to == kNoRank) return false;
    ++counters_.nacks_sent;
    make_message(effect, wire::Kind::nack, to, slot.id, from, index_of(top),
                 Bytes(ask_bytes_).first((end - from + 7) / 8));
    return true;
}

// As root: whether something is to be multicast again.
bool Engine::resends(const Slot& slot) const {
    return slot.nacks.pending() && slot.state >= SlotState::active && slot.is_root(config_.self) &&
           graph_of(slot).multicasts(config_.self) && (slot.state == SlotState::active || slot.retained);
}

// It goes to every address, relayed or not.
bool Engine::next_resend(Slot& slot, Effect& effect) {
    if (!resends(slot)) return false;
    Nacks& nacks = slot.nacks;
    while (nacks.pending()) {
        const std::uint32_t index = nacks.due.find_set(nacks.from, nacks.to);
        nacks.from = index;
        if (index >= nacks.to) break;
        const bool wanted = index >= slot.acknowledged && index < slot.next_multicast;
        if (wanted) {
            ++counters_.fragments_resent;
            make_fragment(slot, index, effect);
            if (!take_target(nacks.target, effect)) return true;
            nacks.said.set(index);
        }
        nacks.due.clear(index);
        nacks.from = index + 1;
        nacks.target = 0;
        if (wanted) return true;
    }
    nacks.from = nacks.to = 0;
    return false;
}

// A multicast after an own NACK measures what answers take.
void Engine::note_answer(Slot& slot, std::uint32_t index, Nanoseconds now) {
    if (slot.nacks.asked_at == kNever || slot.has(index) || !slot.nacks.said.test(index)) return;
    const Nanoseconds took = now - slot.nacks.asked_at;
    deadlines_.on_nack_answer(took);
    policy_.note_repair(Route::root, took, round_trip_.mean());
}

// The next operation needs a channel, or a slot, that is not known to be free. Who does not hear the verdict
// asks.
void Engine::await_watermark(Nanoseconds now) {
    const std::int64_t round_trip = round_trip_.mean().value;
    watermark_.await(now, std::max(config_.least_silence, Nanoseconds{2 * round_trip}),
                     std::max(config_.most_silence, Nanoseconds{8 * round_trip}));
}

void Engine::on_watermark_ask(const wire::Header& header) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity)
        ++counters_.bad_sender;
    else
        watermark_.on_ask(child, number_of(header.operation));
}

void Engine::on_watermark_cast(const wire::Header& header, Nanoseconds now) {
    if (header.sender != rank_of(0)) {
        ++counters_.unexpected_kind;
        return;
    }
    take_watermark(header, now);
}

// The watermark is known to be there: from the parent or from rank 0's multicast.
void Engine::take_watermark(const wire::Header& header, Nanoseconds now) {
    const std::uint64_t watermark = number_of(header.operation);
    if (watermark > slots_.first_open()) {
        ++counters_.unexpected_kind;
        return;
    }
    // The verdict that it was told with may be on its way.
    if (watermark_.take(watermark, index_of(header.fragment) <= verdicts_.version(), now))
        raise_watermark(watermark, now);
}

// Children that hear the verdict need no message.
bool Engine::hears_watermark(Rank child) const {
    return config_.repair == Repair::sync && graph().can_hear(rank_of(0), child);
}

}  // namespace mcastcoll::engine
