// Stage one of the two-stage broadcast (Hoefler, Siebert, Rehm 2007): the root multicasts fragments,
// receivers keep a bitmap. A root is never more than a window ahead of the slowest member that hears it:
// members report up a tree.
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/engine.h"

namespace mcastcoll::engine {

Bytes Engine::fragment_bytes(const Slot& slot, std::uint32_t from, std::uint32_t to) const {
    const std::uint64_t begin = std::uint64_t{from} * config_.fragment_bytes;
    const std::uint64_t end = std::min(slot.bytes, std::uint64_t{to} * config_.fragment_bytes);
    const std::byte* data = data_of(slot);
    return begin < end ? Bytes(data + begin, end - begin) : Bytes{};
}

// Up to which fragment a root may go, for the sake of the slowest member that hears it.
std::uint32_t Engine::window_limit(const Slot& slot) const {
    if (!is_large(slot)) return slot.fragments;
    return std::min(slot.fragments, slot.acknowledged + config_.window);
}

// A root's large operations share one window. The oldest of them may always go as far as makes its receivers
// report: many that have a little unreported each would otherwise fill the window for good.
bool Engine::window_is_full(const Slot& slot) const {
    if (in_flight_ < config_.window) return false;
    if (slot.next_multicast - slot.acknowledged >= config_.report_step()) return true;
    for (std::uint64_t id = slots_.first_open(); id < number_of(slot.id); ++id) {
        const Slot& older = slots_.at(id);
        if (older.state == SlotState::active && is_large(older) && older.is_root(config_.self) &&
            older.acknowledged < older.fragments)
            return true;
    }
    return false;
}

bool Engine::next_fragment(Slot& slot, Effect& effect) {
    if (next_resend(slot, effect)) return true;
    if (relays(slot)) return next_relay(slot, effect);
    const bool large = is_large(slot);
    if (large && (slot.state == SlotState::finished || window_is_full(slot))) return false;
    const std::uint32_t index = slot.next_multicast;
    if (index >= multicast_limit(slot)) return false;
    make_fragment(slot, index, effect);
    if (graph_of(slot).relayed())
        effect.range = config_.range(config_.self);
    else if (!take_target(slot.next_target, effect))
        return true;
    ++slot.next_multicast;
    if (large) ++in_flight_;
    return true;
}

void Engine::make_fragment(const Slot& slot, std::uint32_t index, Effect& effect) {
    make_packet(effect, releases(slot.operation.kind) ? wire::Kind::release : wire::Kind::fragment, slot.id,
                index, announced_total(slot), fragment_bytes(slot, index, index + 1));
}

// Takes over or checks the length of the message. False: it contradicts what is known.
bool Engine::learn_length(Slot& slot, std::uint64_t bytes) {
    if (bytes / config_.fragment_bytes >= UINT32_MAX / 2) return false;
    if (slot.length_known) return slot.bytes == bytes;
    slot.state = SlotState::early;
    slot.length_known = true;
    slot.bytes = bytes;
    slot.fragments = config_.fragments(bytes);
    return true;
}

// Nothing comes of a reduce, and to a root nothing that it has not sent.
bool Engine::cannot_come(const Slot& slot, std::uint32_t index) const {
    if (slot.state < SlotState::active) return false;
    return slot.operation.kind == CollectiveKind::reduce || (slot.is_root(config_.self) && !slot.has(index));
}

void Engine::on_fragment(const wire::Header& header, Bytes payload, Nanoseconds now) {
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    note_heard(header, now);
    const bool relayed = header.kind == wire::Kind::relay;
    // A leader relays in no particular order.
    if (!relayed) reveal_earlier(header.sender, number_of(header.operation), now);
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::finished) {
        ++counters_.duplicates;
        return;
    }
    const std::uint32_t index = index_of(header.fragment);
    const bool release = header.kind == wire::Kind::release;
    const bool posted = slot->state == SlotState::active;
    const bool wrong_sender = relayed ? !may_relay(header.sender)
                                      : posted && (slot->operation.root != header.sender ||
                                                   releases(slot->operation.kind) != release);
    if (wrong_sender || cannot_come(*slot, index) || !learn_length(*slot, length_of(header)) ||
        index >= slot->fragments) {
        ++counters_.bad_fragment;
        return;
    }
    const std::uint64_t begin = std::uint64_t{index} * config_.fragment_bytes;
    if (payload.size() != std::min<std::uint64_t>(config_.fragment_bytes, slot->bytes - begin)) {
        ++counters_.bad_fragment;
        return;
    }
    if (!posted && !relayed) {
        slot->early_root = header.sender;
        slots_.note_early(number_of(header.operation));
    }
    note_partial(*slot, is_partial(header));
    note_answer(*slot, index, now);
    if (store(*slot, index, payload)) ++counters_.fragments_by_multicast;
    note_multicast(*slot, index, now);
    after_store(*slot, now);
}

// What a multicast fragment tells besides its bytes: the path works, and what came before it was sent before
// it.
void Engine::note_multicast(Slot& slot, std::uint32_t index, Nanoseconds now) {
    slot.heard = true;
    slot.doubted = false;
    const bool in_order = index >= slot.revealed;  // neither late nor another multicast
    slot.revealed = std::max(slot.revealed, index + 1);
    ++slot.heard_count;
    const bool first = !std::exchange(slot.heard_ever, true);
    const Nanoseconds before = std::exchange(slot.heard_at, now);
    if (slot.state != SlotState::active) return;
    if (first) deadlines_.on_first(slot, now);
    if (!first && in_order && now > before) {  // a run that was read at once has no gaps
        deadlines_.on_gap(slot, now - before);
        slot.longest_gap = std::max(slot.longest_gap, now - before);
    }
    if (slot.plan.chained || slot.plan.patience > 1) return;
    slot.chained = false;
    if (slot.base < slot.revealed)
        arm_gap(slot, now);
    else
        slot.ask_at = now + deadlines_.silence(slot);
}

// A root multicasts its small operations one after the other: something of a later one tells that an earlier
// one was sent.
void Engine::reveal_earlier(Rank sender, std::uint64_t before, Nanoseconds now) {
    for (std::uint64_t id = slots_.first_open(); id < std::min(before, slots_.next()); ++id) {
        Slot& slot = slots_.at(id);
        if (slot.state != SlotState::active || slot.operation.root != sender || is_large(slot)) continue;
        if (slot.plan.patience > 1 || slot.complete_here()) continue;
        slot.revealed = slot.fragments;
        arm_gap(slot, now);
    }
}

// Where the fragments of an operation are: small ones always in the retransmit buffer, large ones in the
// caller's buffer, or in an early buffer until there is one.
std::byte* Engine::data_of(const Slot& slot) const {
    if (!is_large(slot)) return slot.retransmit_buffer.data();
    return slot.state < SlotState::active ? slot.early : slot.operation.buffer;
}

// A large operation is posted: what came before moves into the caller's buffer, or is forgotten.
void Engine::adopt_early(Slot& slot, bool keep) {
    if (slot.early == nullptr) return;
    const std::uint64_t size = config_.fragment_bytes;
    for (std::uint32_t index = 0; keep && index < std::min(slot.fragments, config_.window); ++index) {
        if (!slot.has(index)) continue;
        const std::uint64_t at = index * size;
        std::memcpy(slot.operation.buffer + at, slot.early + at, std::min(size, slot.bytes - at));
    }
    early_buffers_.give_back(slot.early);
}

// Puts a fragment where it belongs; false when it is not new or cannot be kept.
bool Engine::store(Slot& slot, std::uint32_t index, Bytes payload) {
    if (slot.has(index)) {
#ifdef MCC_BREAK_DUPLICATE_CHECK  // the simulator must notice: a duplicate counts as one more fragment
        if (slot.base < slot.fragments) ++slot.base;
        return true;
#endif
        ++counters_.duplicates;
        return false;
    }
    if (index - slot.base >= slot.have.capacity()) {
        ++counters_.beyond_window;
        return false;
    }
    if (is_large(slot) && slot.state != SlotState::active) {
        if (slot.early == nullptr) slot.early = early_buffers_.take();
        if (slot.early == nullptr || index >= config_.window) {
            ++counters_.unposted_dropped;
            return false;
        }
    }
    std::byte* data = data_of(slot);
    if (!payload.empty())
        std::memcpy(data + std::uint64_t{index} * config_.fragment_bytes, payload.data(), payload.size());
    slot.have.set(index);
    slot.progress_at = now_;
    while (slot.base < slot.fragments && slot.have.test(slot.base)) {
        slot.have.clear(slot.base);
        slot.asked.clear(slot.base);
        ++slot.base;
    }
    mark_ready(slot);  // somebody may be waiting for it
    return true;
}

void Engine::after_store(Slot& slot, Nanoseconds now) {
    if (slot.state != SlotState::active) return;
    if (slot.complete_here()) return on_all_here(slot, now);
    update_report(slot);
    continue_chain(slot);
}

void Engine::on_all_here(Slot& slot, Nanoseconds now) {
    assert(slot.state == SlotState::active && slot.complete_here());
    slot.ask_at = kNever;
    mark_ready(slot);
    const bool root = slot.is_root(config_.self);
    if (is_large(slot)) {
        slot.done_due = !root;
        update_report(slot);  // with which a root may be finished at once
        return check_large_finished(slot);
    }
    if (!root && slot.bytes > 0)
        std::memcpy(slot.operation.buffer, slot.retransmit_buffer.data(), slot.bytes);
    slot.retained = true;
    supply_all(slot, false);
    if (slot.plan.hands_on) {
        const Nanoseconds delay = doubts_.silent(slot.operation.root) ? Nanoseconds{} : deadlines_.gap();
        if (!pushes_.push({slot.id, now + delay})) supply_all(slot, true);
    }
    finish(slot, 0);
}

// A large message stays in the caller's buffer until whoever this member supplies has it; a root also waits
// until every member that hears it has it, which is what keeps it from running away from a slow one.
void Engine::check_large_finished(Slot& slot) {
    if (slot.state != SlotState::active || !slot.complete_here()) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i)
        if (slot.clients[i].expected && !slot.clients[i].done) return;
    if (relays(slot) && slot.next_multicast < slot.fragments) return;
    if (slot.is_root(config_.self) && slot.report_children.count > 0 && slot.acknowledged < slot.fragments)
        return;
    finish(slot, 0);
}

void Engine::on_report(const wire::Header& header, Nanoseconds now) {
    now_ = now;
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    ChildReport* report = slot->report(header.sender);
    if (report == nullptr) {
        ++counters_.bad_sender;
        return;
    }
    const std::uint32_t fragments = index_of(header.fragment);
    if (report->fragments == kNothingReported || fragments > report->fragments) {
        report->fragments = fragments;
        slot->progress_at = now;
    }
    update_report(*slot);
}

// Recomputes what this member's subtree has; a root learns how far it may go, the others tell their parent
// now and then.
void Engine::update_report(Slot& slot) {
    if (slot.state < SlotState::active || !is_large(slot)) return;
    std::uint32_t least = slot.base;
    for (Rank child : slot.report_children) {
        const ChildReport* report = slot.report(child);
        if (report == nullptr || report->fragments == kNothingReported) return;
        least = std::min(least, report->fragments);
    }
    if (slot.is_root(config_.self)) {
        if (slot.report_children.count == 0 || slot.state != SlotState::active) return;
        const std::uint32_t sent =
            std::max(slot.next_multicast, least);  // what everybody has needs no sending
        in_flight_ += sent - slot.next_multicast;
        in_flight_ -= least - slot.acknowledged;
        if (sent > slot.next_multicast) slot.next_target = 0;
        slot.next_multicast = sent;
        slot.acknowledged = least;
        mark_ready(slot);
        return check_large_finished(slot);
    }
    if (slot.report_to == kNoRank) return;
    // At the same places on all levels, so that no level's patience adds to another's.
    const std::uint32_t step = config_.report_step();
    // That it has posted is news where the root will wait for it: who is silent is blamed for a stall.
    const bool is_first = slot.reported == kNothingReported;
    const std::uint32_t before = is_first ? 0 : slot.reported;
    const bool due = (is_first && slot.fragments > config_.window) || least / step > before / step ||
                     (least == slot.fragments && (is_first || slot.reported != least));
    if (!due) return;
    slot.reported = least;
    slot.report_due = true;
    mark_ready(slot);
}

}  // namespace mcastcoll::engine
