// Stage two: what the multicast did not bring comes along the virtual ring, reliably. A member that lacks
// something asks its supplier once; who does not have it yet remembers the question and answers when it has.
// The chain of questions ends at the root, which has everything. Where the plan says so, small messages move
// along the ring without being asked for.
#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "engine/engine.h"

namespace mcastcoll::engine {

// The root has sent the first window without waiting for anybody.
bool Engine::in_first_window(const Slot& slot) const {
    return is_large(slot) && slot.heard_ever && !slot.partial && slot.base < config_.window;
}

// What the root may have sent.
std::uint32_t Engine::expected_to(const Slot& slot) const {
    return in_first_window(slot) ? std::min(slot.fragments, config_.window) : slot.fragments;
}

void Engine::request(Slot& slot, std::uint32_t to) {
    slot.ask_to = std::max(slot.ask_to, std::min({to, slot.fragments, slot.base + config_.window}));
    slot.ask_due = true;
    mark_ready(slot);
}

void Engine::arm_gap(Slot& slot, Nanoseconds now) {
    slot.ask_at = std::min(slot.ask_at, now + deadlines_.gap());
}

void Engine::on_ask_timer(Slot& slot, Nanoseconds now) {
    if (slot.complete_here()) {
        slot.ask_at = kNever;
        return;
    }
    // A root that lacks it itself has nothing to multicast again.
    const bool root_waits = slot.partial && slot.base >= slot.revealed;
    if (root_waits || !asks_root(slot)) return ask_supplier(slot, now);
    const std::uint32_t to = slot.base < slot.revealed ? slot.revealed : expected_to(slot);
    nack(slot, std::min(to, slot.base + config_.window), now);
}

void Engine::ask_supplier(Slot& slot, Nanoseconds now) {
    const bool hole = slot.base < slot.revealed && slot.asked_to < slot.revealed;
    if (!hole && is_large(slot) && !in_first_window(slot)) return poll_supplier(slot);
    if (!hole && !slot.heard) slot.chained = true;
    slot.heard = false;
    if (hole) slot.asked_at = now;  // the supplier very likely has it: the answer measures a round trip
    request(slot, hole ? slot.revealed : expected_to(slot));
    slot.ask_at = slot.chained ? kNever : now + deadlines_.silence(slot);
}

// A member that is asked for what it lacks itself need not wait for its own deadline. Of a large message only
// holes count: the rest may merely not have been sent.
void Engine::ask_onward(Slot& slot, Nanoseconds now) {
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return;
    const std::uint32_t to = is_large(slot) ? slot.revealed : slot.fragments;
    if (to <= slot.base) return;
    if (asks_root(slot)) return nack(slot, std::min(to, slot.base + config_.window), now);
    request(slot, to);
}

// Nothing is known to be missing, yet nothing comes: the multicast may be dead, or the root waits for a
// member that is slower. Asking for much would bring by message what will be multicast as well, so a single
// fragment is asked for, and a root keeps that question until it has multicast the fragment. When the answer
// is what brings it, the multicast is dead.
void Engine::poll_supplier(Slot& slot) {
    slot.heard = false;
    slot.polled = slot.base;
    slot.ask_at = kNever;
    request(slot, slot.base + 1);
}

// The present question of a client that is to be kept until the fragment has been multicast.
bool Engine::keeps(const Slot& slot, const Client& client, std::uint32_t fragment) const {
    return is_large(slot) && slot.state == SlotState::active && slot.is_root(config_.self) &&
           client.wanted_to - fragment == 1 && fragment >= slot.next_multicast &&
           graph_of(slot).hears(config_.self, client.rank);
}

// With the multicast silent, the next window is asked for before the last one is used up.
void Engine::continue_chain(Slot& slot) {
    if (!slot.chained || slot.asked_to >= slot.fragments) return;
    if (slot.asked_to <= slot.base + config_.window / 2) request(slot, slot.fragments);
}

bool Engine::next_ask(Slot& slot, Effect& effect) {
    if (!slot.ask_due) return false;
    slot.ask_due = false;
    if (slot.state != SlotState::active || slot.complete_here() || slot.supplier == kNoRank) return false;
    const std::uint32_t to = std::min(std::max(slot.ask_to, slot.base), slot.base + config_.window);
    std::fill(ask_bytes_.begin(), ask_bytes_.end(), std::byte{0});
    std::uint32_t last = slot.base;
    for (std::uint32_t index = slot.base; index < to; ++index) {
        if (slot.has(index) || slot.asked.test(index)) continue;
        slot.asked.set(index);
        const std::uint32_t offset = index - slot.base;
        ask_bytes_[offset / 8] |= static_cast<std::byte>(1U << (offset % 8));
        last = index + 1;
    }
    slot.asked_to = std::max(slot.asked_to, to);
    if (last == slot.base) return false;
    if (slot.first_asked_at == kNever) slot.first_asked_at = now_;
    const std::size_t length = (last - slot.base + 7) / 8;
    ++counters_.asks_sent;
    make_message(effect, wire::Kind::ask, slot.supplier, slot.id, slot.base, slot.bytes,
                 Bytes(ask_bytes_).first(length));
    return true;
}

void Engine::on_ask(const wire::Header& header, Bytes payload, Nanoseconds now) {
    ++counters_.asks_received;
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    if (slot->state >= SlotState::active && length_of(header) != slot->bytes)
        return fail(kNoRank, EMSGSIZE, true,
                    now);  // members disagree about the length: nobody could ever finish
    Client* client = slot->client(header.sender);
    if (client == nullptr || payload.size() > ask_bytes_.size()) {
        ++counters_.bad_sender;
        return;
    }
    if (client->done || (slot->state == SlotState::finished && is_large(*slot))) return;
    client->asked = true;
    const bool was_multicast =
        slot->state >= SlotState::active && slot->next_multicast > index_of(header.fragment);
    if (was_multicast && graph_of(*slot).hears(config_.self, header.sender)) slot->troubled = true;
    // Questions may overtake each other: an older one may still name what a newer one did not have to repeat.
    const std::uint32_t from = index_of(header.fragment);
    if (from > client->base) {
        for (std::uint32_t i = client->wanted_from; i < std::min(from, client->wanted_to); ++i)
            client->wanted.clear(i);
        client->base = from;
        client->wanted_from = std::max(client->wanted_from, from);
        client->waiting = client->waiting && client->wanted_from < client->wanted_to;
    }
    for (std::uint32_t i = 0; i < payload.size() * 8; ++i) {
        if ((std::to_integer<unsigned>(payload[i / 8]) >> (i % 8) & 1) == 0) continue;
        const std::uint32_t index = from + i;
        if (index < client->base || index - client->base >= client->wanted.capacity()) continue;
        client->wanted.set(index);
        client->wanted_from = client->waiting ? std::min(client->wanted_from, index) : index;
        client->wanted_to = client->waiting ? std::max(client->wanted_to, index + 1) : index + 1;
        client->waiting = true;
    }
    if (client->waiting) ask_onward(*slot, now);
    mark_ready(*slot);
}

// Lets every expected client of one sort have the whole small message, asked for or not.
void Engine::supply_all(Slot& slot, bool hearing) {
    if (!slot.retained) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i) {
        Client& client = slot.clients[i];
        if (!client.expected || graph_of(slot).hears(slot.operation.root, client.rank) != hearing) continue;
        if (hearing && (client.served || client.waiting)) continue;  // it asked, so it names what it lacks
        counters_.hand_ons += hearing;
        for (std::uint32_t index = 0; index < slot.fragments; ++index) client.wanted.set(index);
        client.wanted_from = 0;
        client.wanted_to = slot.fragments;
        client.waiting = true;
        mark_ready(slot);
    }
}

bool Engine::next_data(Slot& slot, Effect& effect) {
    if (!slot.length_known || (slot.state == SlotState::finished && !slot.retained)) return false;
    const std::uint32_t longest = std::max<std::uint32_t>(
        1, (config_.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes)) / config_.fragment_bytes);
    const std::uint32_t limit = supply_limit(slot);
    for (std::uint32_t i = 0; i < slot.client_count; ++i) {
        Client& client = slot.clients[i];
        if (!client.waiting) continue;
        std::uint32_t from = client.wanted.find_set(client.wanted_from, client.wanted_to);
        client.wanted_from = from;
        if (from == client.wanted_to) client.waiting = false;
        while (from < client.wanted_to && !slot.has(from))
            from = client.wanted.find_set(from + 1, client.wanted_to);
        if (from >= client.wanted_to || from >= limit || keeps(slot, client, from)) continue;
        std::uint32_t to = from;
        while (to < client.wanted_to && to < limit && to - from < longest && client.wanted.test(to) &&
               slot.has(to))
            client.wanted.clear(to++);
        client.served = true;
        ++counters_.data_sent;
        counters_.fragments_supplied += to - from;
        make_message(effect, wire::Kind::data, client.rank, slot.id, from, announced_total(slot),
                     fragment_bytes(slot, from, to));
        return true;
    }
    return false;
}

void Engine::on_data(const wire::Header& header, Bytes payload, Nanoseconds now) {
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::finished) {
        ++counters_.duplicates;
        return;
    }
    if (slot->state == SlotState::active && length_of(header) != slot->bytes)
        return fail(kNoRank, EMSGSIZE, true, now);
    const std::uint32_t first = index_of(header.fragment);
    const std::uint32_t count = config_.fragments(payload.size());
    if (!learn_length(*slot, length_of(header)) || first >= slot->fragments ||
        count > slot->fragments - first ||
        payload.size() != std::min(std::uint64_t{count} * config_.fragment_bytes,
                                   slot->bytes - std::uint64_t{first} * config_.fragment_bytes)) {
        ++counters_.bad_fragment;
        return;
    }
    if (cannot_come(*slot, first + count - 1)) {
        ++counters_.bad_fragment;
        return;
    }
    note_partial(*slot, is_partial(header));
    if (slot->asked_at != kNever) round_trip_.on_answer(now - slot->asked_at);
    note_supplied(*slot, now);
    if (slot->polled != kNothingPolled && slot->polled - first < count) note_poll(*slot, now);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t offset = std::size_t{i} * config_.fragment_bytes;
        const Bytes bytes =
            payload.subspan(offset, std::min<std::size_t>(config_.fragment_bytes, payload.size() - offset));
        if (store(*slot, first + i, bytes)) ++counters_.fragments_repaired;
    }
    after_store(*slot, now);
}

// What was polled is here. When this is what brings it, the multicast is dead. But a root that sends a
// fragment whenever it gets one answers often, and the answer may overtake the multicast: of such a one
// another poll must tell the same.
void Engine::note_poll(Slot& slot, Nanoseconds now) {
    const bool multicast_brought_it = slot.has(slot.polled);
    slot.polled = kNothingPolled;
    if (multicast_brought_it) return;
    if (!slot.partial || std::exchange(slot.doubted, true)) {
        slot.chained = true;
    } else {
        slot.ask_at = now + deadlines_.silence(slot);
    }
}

// What an answer tells besides its bytes: how long a repair along the ring takes, unless the root was merely
// late; and how long the deaf usually wait.
void Engine::note_supplied(Slot& slot, Nanoseconds now) {
    if (slot.state != SlotState::active) return;
    const bool hole = std::exchange(slot.asked_at, kNever) != kNever;
    const Nanoseconds asked_at = std::exchange(slot.first_asked_at, kNever);
    if (asked_at != kNever && (hole || !slot.heard_ever))
        policy_.note_repair(Route::supplier, now - asked_at, round_trip_.mean());
    if (slot.heard_ever || graph_of(slot).hears(slot.operation.root, config_.self)) return;
    slot.heard_ever = true;
    deadlines_.on_first(slot, now);
}

void Engine::on_done(const wire::Header& header) {
    Slot* slot = claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::vacant) slot->state = SlotState::early;
    Client* client = slot->client(header.sender);
    if (client == nullptr) {
        ++counters_.bad_sender;
        return;
    }
    client->done = true;
    slot->progress_at = now_;
    client->waiting = false;
    check_large_finished(*slot);
}

}  // namespace mcastcoll::engine
