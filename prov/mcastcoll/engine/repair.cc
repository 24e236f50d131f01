// Stage two: what the multicast did not bring comes along the virtual ring, reliably. A member that lacks
// something asks its supplier once; who does not have it yet remembers the question and answers when it has.
// The chain of questions ends at the root, which has everything. Under the push policy small messages move
// along the ring without being asked for.
#include <algorithm>
#include <cassert>
#include <cerrno>

#include "engine/engine.h"

namespace mcastcoll::engine {

// How long a hole may be mere reordering. A quarter of a round trip: one loss then costs little more than a
// round trip.
Nanoseconds Engine::gap_delay() const {
    return std::clamp(Nanoseconds{round_trip_.mean().value / 4}, Nanoseconds::from_us(20),
                      Nanoseconds::from_ms(2));
}

// How long silence may be mere waiting for the root: what it usually takes until a fragment is heard. A
// question too early costs two messages, one too late costs everybody's time, so the bounds are a few round
// trips.
Nanoseconds Engine::silence_delay() const {
    const std::int64_t round_trip = round_trip_.mean().value;
    const Nanoseconds least = std::max(Nanoseconds::from_us(200), Nanoseconds{2 * round_trip});
    const Nanoseconds most = std::max(Nanoseconds::from_ms(2), Nanoseconds{8 * round_trip});
    return std::max(first_arrival_.deadline(4, least, most), arrival_gap_.deadline(4, least, most));
}

void Engine::request(Slot& slot, std::uint32_t to) {
    slot.ask_to = std::max(slot.ask_to, std::min({to, slot.fragments, slot.base + config_.window}));
    slot.ask_due = true;
    mark_ready(slot);
}

void Engine::arm_gap(Slot& slot, Nanoseconds now) {
    slot.ask_at = std::min(slot.ask_at, now + gap_delay());
}

void Engine::on_ask_timer(Slot& slot, Nanoseconds now) {
    if (slot.complete_here()) {
        slot.ask_at = kNever;
        return;
    }
    const bool hole = slot.base < slot.revealed && slot.asked_to < slot.revealed;
    if (!hole && !slot.heard) slot.chained = true;
    slot.heard = false;
    if (hole) slot.asked_at = now;  // the supplier very likely has it: the answer measures a round trip
    request(slot, hole ? slot.revealed : slot.fragments);
    slot.ask_at = slot.chained ? kNever : now + silence_delay();
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
    if (slot->state >= SlotState::active && header.total != slot->bytes)
        return fail(kNoRank, EMSGSIZE, true,
                    now);  // members disagree about the length: nobody could ever finish
    Client* client = slot->client(header.sender);
    if (client == nullptr || payload.size() > ask_bytes_.size()) {
        ++counters_.bad_sender;
        return;
    }
    if (client->done || (slot->state == SlotState::finished && is_large(*slot))) return;
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
    mark_ready(*slot);
}

// Lets every expected client of one sort have the whole small message, asked for or not.
void Engine::supply_all(Slot& slot, bool hearing) {
    if (!slot.stashed) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i) {
        Client& client = slot.clients[i];
        if (!client.expected || graph_.hears(slot.operation.root, client.rank) != hearing) continue;
        for (std::uint32_t index = 0; index < slot.fragments; ++index) client.wanted.set(index);
        client.wanted_from = 0;
        client.wanted_to = slot.fragments;
        client.waiting = true;
        mark_ready(slot);
    }
}

bool Engine::next_data(Slot& slot, Effect& effect) {
    if (!slot.length_known || (slot.state == SlotState::finished && !slot.stashed)) return false;
    const std::uint32_t longest = std::max<std::uint32_t>(
        1, (config_.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes)) / config_.fragment_bytes);
    for (std::uint32_t i = 0; i < slot.client_count; ++i) {
        Client& client = slot.clients[i];
        if (!client.waiting) continue;
        std::uint32_t from = client.wanted.find_set(client.wanted_from, client.wanted_to);
        client.wanted_from = from;
        if (from == client.wanted_to) client.waiting = false;
        while (from < client.wanted_to && !slot.has(from))
            from = client.wanted.find_set(from + 1, client.wanted_to);
        if (from >= client.wanted_to || from >= slot.fragments) continue;
        std::uint32_t to = from;
        while (to < client.wanted_to && to < slot.fragments && to - from < longest &&
               client.wanted.test(to) && slot.has(to))
            client.wanted.clear(to++);
        ++counters_.data_sent;
        counters_.fragments_supplied += to - from;
        make_message(effect, wire::Kind::data, client.rank, slot.id, from, slot.bytes,
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
    if (slot->state == SlotState::active && header.total != slot->bytes)
        return fail(kNoRank, EMSGSIZE, true, now);
    const std::uint32_t first = index_of(header.fragment);
    const std::uint32_t count = config_.fragments(payload.size());
    if (!learn_length(*slot, header) || first >= slot->fragments || count > slot->fragments - first ||
        payload.size() != std::min(std::uint64_t{count} * config_.fragment_bytes,
                                   slot->bytes - std::uint64_t{first} * config_.fragment_bytes)) {
        ++counters_.bad_fragment;
        return;
    }
    if (slot->asked_at != kNever) {
        // The question may have been remembered, so an answer counts for no more than twice what was
        // expected.
        round_trip_.sample(std::min(now - slot->asked_at, Nanoseconds{2 * round_trip_.mean().value}));
        slot->asked_at = kNever;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t offset = std::size_t{i} * config_.fragment_bytes;
        const Bytes bytes =
            payload.subspan(offset, std::min<std::size_t>(config_.fragment_bytes, payload.size() - offset));
        if (store(*slot, first + i, bytes)) ++counters_.fragments_repaired;
    }
    after_store(*slot, now);
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
    client->waiting = false;
    check_large_finished(*slot);
}

}  // namespace mcastcoll::engine
