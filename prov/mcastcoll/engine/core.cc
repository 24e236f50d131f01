#include "engine/core.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace mcastcoll::engine {
namespace {

// The ranges with a listener other than this member.
std::vector<std::uint32_t> other_ranges(const GroupConfig& config) {
    std::vector<std::uint32_t> ranges;
    for (std::uint32_t i = 0; i < config.members; ++i) {
        const std::uint32_t range = config.range(rank_of(i));
        if (rank_of(i) != config.self && std::ranges::count(ranges, range) == 0) ranges.push_back(range);
    }
    std::ranges::sort(ranges);
    return ranges;
}

}  // namespace

Core::Core(const GroupConfig& c)
    : config(c),
      children(tree_children(c.self, c.tree_arity, c.members)),
      parent(tree_parent(c.self, c.tree_arity)),
      targets(other_ranges(c)),
      policy(config),
      redundancy(config),
      root_sync(config),
      reachability(config, children),
      departure(children, parent),
      slots(config, children.count),
      pending(c.pending_operations),
      notices{Ring<Notices::Completion>(2 * std::size_t{c.operation_slots} + c.pending_operations),
              Ring<OperationId>(c.operation_slots)},
      turns(c.operation_slots),
      // Every silence deadline is at least 1.5 round trips: a round trip below this value shortens no
      // deadline.
      round_trip(c.initial_rtt, Nanoseconds{c.min_silence.value * 2 / 3}, c.max_silence),
      deadlines(config, round_trip, redundancy),
      bits(slots.at(0).have.capacity() / 8) {
    assert(index_of(c.self) < c.members);
    assert(c.range_of.empty() || c.range_of.size() == c.members);
    assert(targets.empty() || targets.back() < c.ranges);
    assert(c.retransmit_bytes >= c.fragment_bytes);
    assert(std::has_single_bit(c.operation_slots) && c.operation_slots >= 8);
    assert(c.retransmit_bytes <= std::uint64_t{c.window} * c.fragment_bytes);
    assert(c.fragment_bytes < UINT32_MAX / 2);
    assert(c.message_bytes >= wire::kHeaderBytes + c.fragment_bytes);
    assert(c.message_bytes >= wire::kHeaderBytes + c.window / 8);
    assert(c.message_bytes >= wire::kHeaderBytes + c.gather_bytes);
    assert(c.checkpoint_interval() >= 1 && c.checkpoint_interval() <= c.max_ahead());
    assert(c.max_ahead() <= c.operation_slots);
    assert(c.tree_arity <= kMaxArity && c.large_tree_arity <= kMaxArity);
}

std::uint32_t Core::child_index(Rank rank) const {
    const std::uint32_t place = children.place(rank);
    return place == children.count ? kMaxArity : place;
}

std::uint32_t Core::child_of(const wire::Header& header) {
    const std::uint32_t child = child_index(header.sender);
    counters.unexpected_kind += child == kMaxArity;
    return child;
}

Slot* Core::claim(OperationId id) {
    const std::uint64_t number = number_of(id);
    if (number < slots.first_kept()) return drop(counters.stale_operation), nullptr;
    if (number >= slots.end()) {
        // A sender can be this far ahead only if all members have finished the slot's previous operation, so
        // the packet implies a higher watermark.
        const std::uint64_t implied = number - slots.size() + 1;
        if (implied > slots.first_open()) return drop(counters.future_operation), nullptr;
        release_below(implied);
    }
    return &slots.take(id);
}

Slot* Core::claim_early(OperationId id) {
    Slot* const slot = claim(id);
    if (slot != nullptr && slot->state == SlotState::vacant) slot->state = SlotState::early;
    return slot;
}

void Core::release_below(std::uint64_t id) {
    if (id <= slots.first_kept() || id > slots.first_open()) return;
    for (; slots.first_kept() < id; slots.release_first()) learn_from(slots.at(slots.first_kept()));
    moved_at = now;
    ++counters.checkpoints;
    reachability.release_below(slots.first_kept());
}

// Evaluates the repairs of an operation for which no further NAK can come.
void Core::learn_from(const Slot& slot) {
    if (slot.state != SlotState::finished) return;
    if (is_root(slot) && slot.operation.kind == CollectiveKind::broadcast)
        root_sync.note_operation(slot.multicasting.degraded);
    if (large(slot) || slot.repair_mode.forwards) return;
    for (const Slot::Client& client : slot.known_clients())
        if (client.expected && graph_of(slot).receives(slot.operation.root, client.rank))
            policy.note_successor(client.sent_nak);
    counters.policy_changes = policy.changes();
}

void Core::finish(Slot& slot) {
    assert(slot.state == SlotState::active);
    slot.state = SlotState::finished;
    moved_at = now;
    if (!large(slot)) kept_bytes += slot.bytes;
    slot.naks.at = kNever;
    slot.naks.due = false;
    const bool completed_early = slot.completed_early();
    if (!completed_early) learn_losses(slot);
    if ((large(slot) || !slot.reception.ever) && receives(slot)) {
        if (!slot.reception.ever && slot.operation.kind != CollectiveKind::reduce)
            suspicion.missed(slot.operation.root);
        if (large(slot)) policy.note_large(slot.reception.count, slot.fragments);
    }
    counters.policy_changes = policy.changes();
    if (!completed_early) complete(slot.id, 0);
    slots.late_copies().give_back(slot.late_copy);
    slots.close_finished();
    unsettled = true;
}

void Core::finish_early(Slot& slot) {
    assert(slot.state == SlotState::active && slot.complete_here() && slot.bytes <= config.late_bytes);
    slot.late_copy = slots.late_copies().take();
    if (slot.late_copy == nullptr) return;
    std::memcpy(slot.late_copy, slot.operation.buffer, slot.bytes);
    slot.operation.buffer = slot.late_copy;
    ++counters.finished_early;
    learn_losses(slot);
    complete(slot.id, 0);
}

// Records which fragments the multicast was to bring and did not. A path that has been silent for long is no
// loss that redundancy can repair, so such an operation does not count.
void Core::learn_losses(const Slot& slot) {
    if (slot.operation.kind == CollectiveKind::reduce || is_root(slot) || !receives(slot)) return;
    if (!slot.reception.ever && suspicion.silent(slot.operation.root)) return;
    const std::uint32_t received = std::min(slot.reception.firsts, slot.fragments);
    redundancy.meter().note(slot.fragments - received, slot.fragments - slot.reception.stored,
                            slot.fragments);
}

void Core::complete(OperationId operation, int status) {
    ++(status == 0 ? counters.operations_completed : counters.operations_failed);
    [[maybe_unused]] const bool queued = notices.completions.push({operation, status});
    assert(queued);
}

void Core::fail(Rank lost, int error, bool inform) {
    if (over()) return;
    // A member that has closed the group and has no open operation loses nothing by a failure, and a member
    // may legitimately be gone once the whole group has left. The peers are informed all the same: a peer may
    // have waited for data that only this member or the lost member could supply.
    const bool only_lingered = departure.closing() && all_completed() && phase == Phase::active;
    phase = Phase::failed;
    failure = {lost, error, only_lingered && inform, inform ? 0 : config.members};
    notices.failed |= !only_lingered;
    notices.left |= only_lingered && !inform;
    for (std::uint64_t id = slots.first_open(); id < slots.next(); ++id) {
        Slot& slot = slots.at(id);
        if (slot.state != SlotState::active) continue;
        slot.state = SlotState::finished;
        if (!slot.completed_early()) complete(slot.id, error);
    }
    slots.close_all();
    for (std::uint64_t id = slots.next(); !pending.empty(); pending.pop())
        complete(operation_of(id++), error);
    while (!notices.gathered.empty()) notices.gathered.pop();
}

std::byte* Core::data_of(const Slot& slot) const {
    if (!large(slot)) return slot.retransmit_buffer;
    return slot.state < SlotState::active ? slot.early : slot.operation.buffer;
}

Bytes Core::fragments_of(const Slot& slot, std::uint32_t from, std::uint32_t to) const {
    const std::uint64_t begin = std::uint64_t{from} * config.fragment_bytes;
    const std::uint64_t end = std::min(slot.bytes, std::uint64_t{to} * config.fragment_bytes);
    const std::byte* data = data_of(slot);
    return begin < end ? Bytes(data + begin, end - begin) : Bytes{};
}

std::uint64_t Core::announced_total(const Slot& slot) const {
    const bool root = slot.state >= SlotState::active && is_root(slot);
    const bool partial = root ? !slot.complete_here() : slot.reception.partial;
    return slot.bytes | (partial ? wire::kPartialFlag : 0);
}

bool Core::message(Effect& effect, wire::Kind kind, Rank to, OperationId operation, std::uint32_t fragment,
                   std::uint64_t total, Bytes payload) {
    assert(to != config.self && index_of(to) < config.members);
    effect = {.kind = Effect::Kind::message, .to = to, .payload = payload};
    write_header(effect, kind, operation, fragment, total);
    ++counters.messages_sent;
    return true;
}

bool Core::packet(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                  std::uint64_t total, Bytes payload) {
    effect = {.kind = Effect::Kind::multicast, .payload = payload};
    write_header(effect, kind, operation, fragment, total);
    ++counters.datagrams_sent;
    return true;
}

void Core::write_header(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                        std::uint64_t total) const {
    const wire::Header header{.kind = kind,
                              .key = config.key,
                              .epoch = config.epoch,
                              .sender = config.self,
                              .operation = operation,
                              .fragment = fragment_of(fragment),
                              .payload_bytes = static_cast<std::uint32_t>(effect.payload.size()),
                              .total = total};
    wire::encode(header, effect.payload, effect.header, config.checksum);
}

bool Core::take_target(std::uint32_t& next, Effect& effect) const {
    effect.range = targets[next];
    if (++next < targets.size()) return false;
    next = 0;
    return true;
}

}  // namespace mcastcoll::engine
