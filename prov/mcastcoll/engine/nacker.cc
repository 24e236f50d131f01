#include "engine/nacker.h"

#include <algorithm>

namespace mcastcoll::engine {

namespace {

// Rounds without any gain after which the ring supplier is asked instead.
constexpr std::uint32_t kFruitlessRounds = 2;

}  // namespace

// What another multicast usually takes.
Nanoseconds Nacker::answer_delay(const Slot& slot) const {
    std::int64_t hops = 3;  // the last one down, and some patience
    for (Rank rank = slot.reporting.parent; rank != kNoRank && rank != slot.operation.root; ++hops)
        rank = core_.graph_of(slot).report_parent(slot.operation.root, rank, core_.config.tree_arity);
    return core_.deadlines.nack(hops);
}

bool Nacker::asks_root(const Slot& slot) const {
    return slot.plan.route == Route::root && slot.reporting.parent != kNoRank && !slot.asking.chained &&
           slot.nacks.rounds < kFruitlessRounds;
}

bool Nacker::ask(Slot& slot, std::uint32_t to) {
    Nacks& nacks = slot.nacks;
    const Nanoseconds delay = answer_delay(slot);
    nacks.begin_round(core_.now, delay);
    const bool gained = nacks.answer_by == kNever || slot.base > nacks.base;
    if (gained) nacks.rounds = 0;
    if (!gained && core_.now >= nacks.answer_by && ++nacks.rounds >= kFruitlessRounds) return false;
    if (gained || core_.now >= nacks.answer_by) {
        nacks.base = slot.base;
        nacks.asked_at = core_.now;
        nacks.answer_by = core_.now + delay;
    }
    for (std::uint32_t index = slot.base; index < to; ++index)
        if (!slot.has(index)) nacks.add(index);
    slot.asking.at = nacks.answer_by;
    core_.mark(slot);
    return true;
}

// From a child in the report tree. The root's own multicast may still be to come: only what it has sent is
// sent again.
void Nacker::on_nack(const wire::Header& header, Bytes payload) {
    ++core_.counters.nacks_received;
    const std::uint64_t root = header.total;
    if (root >= core_.config.members || payload.size() > core_.bits.size()) {
        ++core_.counters.bad_sender;
        return;
    }
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    const Rank top = rank_of(root);
    const bool self_is_top = top == core_.config.self;
    const bool posted = slot->state >= SlotState::active;
    if ((posted && slot->operation.root != top) ||
        (!self_is_top && !core_.graph_of(*slot).hears(top, core_.config.self))) {
        ++core_.counters.bad_sender;
        return;
    }
    if (self_is_top && (!posted || (slot->state == SlotState::finished && !slot->retained))) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (self_is_top) slot->multicasting.troubled = true;
    if (Client* client = slot->find_client(header.sender)) client->asked = true;
    Nacks& nacks = slot->nacks;
    nacks.begin_round(core_.now, core_.round_trip.mean());
    const std::uint32_t from = index_of(header.fragment);
    for (std::uint32_t i = 0; i < payload.size() * 8; ++i) {
        if ((std::to_integer<unsigned>(payload[i / 8]) >> (i % 8) & 1) == 0) continue;
        if (i > UINT32_MAX - 1 - from) break;
        const std::uint32_t index = from + i;
        if (self_is_top && (index >= slot->multicasting.next || index < slot->multicasting.acknowledged))
            continue;
        if (!nacks.add(index)) break;
    }
    slot->nack_root = top;
    core_.mark(*slot);
}

// A multicast after an own NACK measures what answers take.
void Nacker::measure_answer(const Slot& slot, std::uint32_t index) {
    if (slot.has(index) || !slot.nacks.said.test(index)) return;
    const Nanoseconds took = core_.now - slot.nacks.asked_at;
    core_.deadlines.on_nack_answer(took);
    core_.policy.note_repair(Route::root, took, core_.round_trip.mean());
}

// What this member was told or lacks itself, one step up the tree.
bool Nacker::make_message(Slot& slot, Effect& effect) {
    Nacks& nacks = slot.nacks;
    const Rank top = slot.state >= SlotState::active ? slot.operation.root : slot.nack_root;
    if (top == core_.config.self) return false;  // the sender sees to it
    const Rank to = core_.graph_of(slot).report_parent(top, core_.config.self, core_.config.tree_arity);
    const std::uint32_t from = nacks.from, end = nacks.to;
    std::fill(core_.bits.begin(), core_.bits.end(), std::byte{0});
    for (std::uint32_t at = nacks.due.find_set(from, end); at < end; at = nacks.due.find_set(at + 1, end)) {
        core_.bits[(at - from) / 8] |= static_cast<std::byte>(1U << ((at - from) % 8));
        nacks.due.clear(at);
        nacks.said.set(at);
    }
    nacks.from = nacks.to = 0;
    if (to == kNoRank) return false;
    ++core_.counters.nacks_sent;
    core_.message(effect, wire::Kind::nack, to, slot.id, from, index_of(top),
                  Bytes(core_.bits).first((end - from + 7) / 8));
    return true;
}

}  // namespace mcastcoll::engine
