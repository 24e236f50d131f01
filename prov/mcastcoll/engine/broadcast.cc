// Stage one of the two-stage broadcast (Hoefler, Siebert, Rehm 2007): the root multicasts fragments,
// receivers keep a bitmap. A root is never more than a window ahead of the slowest member that hears it:
// members report up a tree.
#include <cassert>
#include <cerrno>
#include <cstring>

#include "engine/engine.h"

namespace mcastcoll::engine {

Bytes Engine::fragment_bytes(const Slot& slot, std::uint32_t from, std::uint32_t to) const {
    const std::uint64_t begin = std::uint64_t{from} * config_.fragment_bytes;
    const std::uint64_t end = std::min(slot.bytes, std::uint64_t{to} * config_.fragment_bytes);
    const std::byte* data = data_of(slot);
    return begin < end ? Bytes(data + begin, end - begin) : Bytes{};
}

std::uint32_t Engine::multicast_limit(const Slot& slot) const {
    if (!is_large(slot)) return slot.fragments;
    if (!slot.everybody_posted) return std::min(slot.fragments, config_.initial_window);
    return std::min(slot.fragments, slot.acknowledged + config_.window);
}

bool Engine::next_fragment(Slot& slot, Effect& effect) {
    if (slot.state < SlotState::active || !slot.is_root(config_.self) || !slot.complete_here()) return false;
    if (!graph_.multicasts(config_.self)) return false;
    const bool large = is_large(slot);
    if (large && (slot.state == SlotState::finished || in_flight_ >= config_.window)) return false;
    if (slot.next_multicast >= multicast_limit(slot)) return false;
    const std::uint32_t index = slot.next_multicast++;
    if (large) ++in_flight_;
    const bool barrier = slot.operation.kind == OperationKind::barrier;
    make_packet(effect, barrier ? wire::Kind::release : wire::Kind::fragment, slot.id, index, slot.bytes,
                fragment_bytes(slot, index, index + 1));
    return true;
}

// Takes over or checks the length of the message. False: it contradicts what is known.
bool Engine::learn_length(Slot& slot, const wire::Header& header) {
    if (header.total / config_.fragment_bytes >= UINT32_MAX / 2) return false;
    if (slot.length_known) return slot.bytes == header.total;
    slot.state = SlotState::early;
    slot.length_known = true;
    slot.bytes = header.total;
    slot.fragments = config_.fragments(header.total);
    return true;
}

void Engine::on_fragment(const wire::Header& header, Bytes payload, Nanoseconds now) {
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    reveal_earlier(header.sender, number_of(header.operation), now);
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::finished) {
        ++counters_.duplicates;
        return;
    }
    const std::uint32_t index = index_of(header.fragment);
    const bool release = header.kind == wire::Kind::release;
    const bool posted = slot->state == SlotState::active;
    const bool wrong_operation = posted && (slot->operation.root != header.sender ||
                                            (slot->operation.kind == OperationKind::barrier) != release);
    if (wrong_operation || !learn_length(*slot, header) || index >= slot->fragments) {
        ++counters_.bad_fragment;
        return;
    }
    const std::uint64_t begin = std::uint64_t{index} * config_.fragment_bytes;
    if (payload.size() != std::min<std::uint64_t>(config_.fragment_bytes, slot->bytes - begin)) {
        ++counters_.bad_fragment;
        return;
    }
    if (!posted) slot->early_root = header.sender;
    if (store(*slot, index, payload)) ++counters_.fragments_by_multicast;
    note_multicast(*slot, index, now);
    after_store(*slot, now);
}

// What a multicast fragment tells besides its bytes: the lane works, and what came before it was sent before
// it.
void Engine::note_multicast(Slot& slot, std::uint32_t index, Nanoseconds now) {
    slot.heard = true;
    slot.revealed = std::max(slot.revealed, index + 1);
    silent_operations_ = 0;
    if (slot.state != SlotState::active) {
        slot.heard_ever = true;
        return;
    }
    if (!slot.heard_ever) {
        slot.heard_ever = true;
        first_arrival_.sample(now - slot.posted_at);
    } else {
        arrival_gap_.sample(now - slot.heard_at);
    }
    slot.heard_at = now;
    if (config_.repair == Repair::push) return;
    slot.chained = false;
    if (slot.base < slot.revealed)
        arm_gap(slot, now);
    else
        slot.ask_at = now + silence_delay();
}

// A root multicasts its small operations one after the other: something of a later one tells that an earlier
// one was sent.
void Engine::reveal_earlier(Rank sender, std::uint64_t before, Nanoseconds now) {
    for (std::uint64_t id = first_open_; id < std::min(before, next_id_); ++id) {
        Slot& slot = slot_at(id);
        if (slot.state != SlotState::active || slot.operation.root != sender || is_large(slot)) continue;
        if (config_.repair == Repair::push || slot.complete_here()) continue;
        slot.revealed = slot.fragments;
        arm_gap(slot, now);
    }
}

// Where the fragments of an operation are: small ones always in the stash, large ones in the caller's buffer,
// or in an early buffer until there is one.
std::byte* Engine::data_of(const Slot& slot) const {
    if (!is_large(slot)) return slot.stash.data();
    return slot.state < SlotState::active ? slot.early : slot.operation.buffer;
}

// A large operation is posted: what came before moves into the caller's buffer, or is forgotten.
void Engine::adopt_early(Slot& slot, bool keep) {
    if (slot.early == nullptr) return;
    const std::uint64_t size = config_.fragment_bytes;
    for (std::uint32_t index = 0; keep && index < std::min(slot.fragments, config_.initial_window); ++index) {
        if (!slot.has(index)) continue;
        const std::uint64_t at = index * size;
        std::memcpy(slot.operation.buffer + at, slot.early + at, std::min(size, slot.bytes - at));
    }
    free_early_.push_back(slot.early);
    slot.early = nullptr;
}

// Puts a fragment where it belongs; false when it is not new or cannot be kept.
bool Engine::store(Slot& slot, std::uint32_t index, Bytes payload) {
    if (slot.has(index)) {
        ++counters_.duplicates;
        return false;
    }
    if (index - slot.base >= slot.have.capacity()) {
        ++counters_.beyond_window;
        return false;
    }
    if (is_large(slot) && slot.state != SlotState::active) {
        if (slot.early == nullptr && !free_early_.empty()) {
            slot.early = free_early_.back();
            free_early_.pop_back();
        }
        if (slot.early == nullptr || index >= config_.initial_window) {
            ++counters_.unposted_dropped;
            return false;
        }
    }
    std::byte* data = data_of(slot);
    if (!payload.empty())
        std::memcpy(data + std::uint64_t{index} * config_.fragment_bytes, payload.data(), payload.size());
    slot.have.set(index);
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
    if (!root && slot.bytes > 0) std::memcpy(slot.operation.buffer, slot.stash.data(), slot.bytes);
    slot.stashed = true;
    supply_all(slot, false);
    if (config_.repair == Repair::push) {
        const Nanoseconds delay = silent_operations_ >= kSilentEnough ? Nanoseconds{} : gap_delay();
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
    if (report->fragments == kNothingReported || fragments > report->fragments) report->fragments = fragments;
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
        slot.next_multicast = sent;
        slot.acknowledged = least;
        slot.everybody_posted = true;
        mark_ready(slot);
        return check_large_finished(slot);
    }
    if (slot.report_to == kNoRank) return;
    const bool due = slot.reported == kNothingReported || least >= slot.reported + config_.window / 4 ||
                     (least == slot.fragments && slot.reported != least);
    if (!due) return;
    slot.reported = least;
    slot.report_due = true;
    mark_ready(slot);
}

}  // namespace mcastcoll::engine
