#include "engine/root_repairer.h"

namespace mcastcoll::engine {
namespace {

// Rounds without progress after which NAKs go to the ring supplier.
constexpr std::uint32_t kFruitlessRounds = 2;

}  // namespace

// Expected time until the root multicasts again.
Nanoseconds RootRepairer::answer_delay(const Slot& slot) const {
    std::int64_t hops = 3;  // the hop to the parent, the multicast back, and one as a margin
    for (Rank rank = slot.reporting.parent; rank != kNoRank && rank != slot.operation.root; ++hops)
        rank = core_.graph_of(slot).report_parent(slot.operation.root, rank, core_.config.tree_arity);
    return core_.deadlines.root_nak(hops);
}

bool RootRepairer::uses_root(const Slot& slot) const {
    return slot.repair_mode.route == Route::root && slot.reporting.parent != kNoRank && !slot.naks.chained &&
           slot.root_naks.rounds < kFruitlessRounds;
}

bool RootRepairer::nak(Slot& slot, std::uint32_t to) {
    Slot::RootNaks& root_naks = slot.root_naks;
    const Nanoseconds delay = answer_delay(slot);
    root_naks.begin_round(core_.now, delay);
    const bool gained = root_naks.answer_by == kNever || slot.base > root_naks.base;
    if (gained) root_naks.rounds = 0;
    if (!gained && core_.now >= root_naks.answer_by && ++root_naks.rounds >= kFruitlessRounds) return false;
    if (gained || core_.now >= root_naks.answer_by) {
        root_naks.base = slot.base;
        root_naks.sent_at = core_.now;
        root_naks.answer_by = core_.now + delay;
    }
    for (std::uint32_t index = slot.base; index < to; ++index)
        if (!slot.has(index)) root_naks.add(index);
    slot.naks.at = root_naks.answer_by;
    core_.mark(slot);
    return true;
}

// A NAK from a child in the report tree. The root retransmits only fragments that it has multicast already;
// the rest is still to come.
void RootRepairer::on_root_nak(const wire::Header& header, Bytes payload) {
    ++core_.counters.root_naks_received;
    const std::uint64_t root = header.total;
    if (root >= core_.config.members || payload.size() > core_.bits.size())
        return drop(core_.counters.bad_sender);
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    const Rank top = rank_of(root);
    const bool self_is_top = top == core_.self();
    const bool posted = slot->state >= SlotState::active;
    if ((posted && slot->operation.root != top) ||
        (!self_is_top && !core_.graph_of(*slot).receives(top, core_.self())))
        return drop(core_.counters.bad_sender);
    if (self_is_top && (!posted || (slot->state == SlotState::finished && !slot->retained))) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (self_is_top) slot->multicasting.degraded = true;
    if (Slot::Client* client = slot->find_client(header.sender)) client->sent_nak = true;
    Slot::RootNaks& root_naks = slot->root_naks;
    root_naks.begin_round(core_.now, core_.round_trip.mean());
    for_each_named(payload, index_of(header.fragment), [&](std::uint32_t index) {
        if (!self_is_top || slot->multicasting.may_repeat(index)) root_naks.add(index);
    });
    slot->named_root = top;
    core_.mark(*slot);
}

// A multicast after an own NAK measures the time of an answer.
void RootRepairer::measure_answer(const Slot& slot, std::uint32_t index) {
    if (slot.has(index) || !slot.root_naks.named.test(index)) return;
    const Nanoseconds took = core_.now - slot.root_naks.sent_at;
    core_.deadlines.on_root_nak_answer(took);
    core_.policy.note_repair(Route::root, took, core_.round_trip.mean());
}

// Sends the NAKs of this member and its children one level up the report tree.
bool RootRepairer::make_message(Slot& slot, Effect& effect) {
    Slot::RootNaks& root_naks = slot.root_naks;
    const Rank top = slot.state >= SlotState::active ? slot.operation.root : slot.named_root;
    if (top == core_.self()) return false;  // sender.h retransmits on the root
    const Rank to = core_.graph_of(slot).report_parent(top, core_.self(), core_.config.tree_arity);
    const std::uint32_t from = root_naks.due.from, end = root_naks.due.to;
    std::fill(core_.bits.begin(), core_.bits.end(), std::byte{0});
    for (std::uint32_t at = root_naks.due.first(); at < end; at = root_naks.due.after(at)) {
        wire::set_bit(core_.bits.data(), at - from);
        root_naks.named.set(at);
    }
    root_naks.due.clear();
    if (to == kNoRank) return false;
    ++core_.counters.root_naks_sent;
    return core_.message(effect, wire::Kind::root_nak, to, slot.id, from, index_of(top),
                         Bytes(core_.bits).first((end - from + 7) / 8));
}

}  // namespace mcastcoll::engine
