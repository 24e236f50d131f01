#include "engine/supplier.h"

#include <cerrno>
#include <cstring>

namespace mcastcoll::engine {

void Supplier::on_all_here(Slot& slot) {
    assert(slot.state == SlotState::active && slot.complete_here());
    slot.naks.at = kNever;
    core_.mark(slot);
    if (core_.large(slot)) return flow_.on_all_here(slot);
    if (!core_.is_root(slot) && slot.bytes > 0)
        std::memcpy(slot.operation.buffer, slot.retransmit_buffer, slot.bytes);
    slot.retained = true;
    supply_all(slot, false);
    if (slot.repair_mode.forwards) {
        const bool silent = core_.suspicion.silent(slot.operation.root);
        const Nanoseconds delay = silent ? Nanoseconds{} : core_.deadlines.gap();
        if (!pushes_.push({slot.id, core_.now + delay})) supply_all(slot, true);
    }
    core_.finish(slot);
}

void Supplier::on_timeout() {
    for (; !pushes_.empty() && pushes_.front().at <= core_.now; pushes_.pop())
        if (Slot* slot = core_.slots.find(pushes_.front().operation)) supply_all(*slot, true);
}

void Supplier::on_nak(const wire::Header& header, Bytes payload) {
    ++core_.counters.naks_received;
    Slot* slot = core_.claim_early(header.operation);
    if (slot == nullptr) return;
    if (slot->state >= SlotState::active && length_of(header) != slot->bytes)
        // The members disagree about the length, so no member could finish.
        return core_.fail(kNoRank, EMSGSIZE);
    Slot::Client* client = slot->client(header.sender);
    if (client == nullptr || payload.size() > core_.bits.size()) return drop(core_.counters.bad_sender);
    if (client->done || (slot->state == SlotState::finished && core_.large(*slot))) return;
    client->sent_nak = true;
    const bool was_multicast =
        slot->state >= SlotState::active && slot->multicasting.next > index_of(header.fragment);
    if (was_multicast && core_.graph_of(*slot).receives(core_.self(), header.sender))
        slot->multicasting.degraded = true;
    // NAKs may overtake each other: an older NAK may name fragments that a newer NAK did not need to repeat.
    const std::uint32_t from = index_of(header.fragment);
    client->base = std::max(client->base, from);
    client->wanted.drop_below(from);
    for_each_named(payload, from, [client](std::uint32_t index) {
        if (index >= client->base) client->wanted.add(index);
    });
    if (client->waiting()) repairer_.forward_nak(*slot);
    core_.mark(*slot);
}

// Queues the whole small message for expected clients without a NAK: if `receiving`, for clients that receive
// the root's multicasts, else for the other clients.
void Supplier::supply_all(Slot& slot, bool receiving) {
    if (!slot.retained) return;
    for (Slot::Client& client : slot.known_clients()) {
        if (!client.expected || core_.graph_of(slot).receives(slot.operation.root, client.rank) != receiving)
            continue;
        if (receiving && (client.served || client.waiting()))
            continue;  // its NAK names the missing fragments
        core_.counters.messages_forwarded += receiving;
        for (std::uint32_t index = 0; index < slot.fragments; ++index) client.wanted.add(index);
        core_.mark(slot);
    }
}

// A NAK for a single fragment of a receiving client is kept until the root has multicast that fragment.
bool Supplier::keeps(const Slot& slot, const Slot::Client& client, std::uint32_t fragment) const {
    return core_.large(slot) && slot.state == SlotState::active && core_.is_root(slot) &&
           client.wanted.to - fragment == 1 && fragment >= slot.multicasting.next &&
           core_.graph_of(slot).receives(core_.self(), client.rank);
}

// End of the fragments that clients may be sent. Leaders multicast received fragments at once, so a root
// stays within its window when it supplies leaders.
std::uint32_t Supplier::supply_limit(const Slot& slot) const {
    const bool supplies_leaders = slot.state >= SlotState::active && core_.is_root(slot) &&
                                  core_.graph_of(slot).relayed() &&
                                  core_.graph_of(slot).multicasts(core_.self());
    return supplies_leaders ? flow_.limit(slot) : slot.fragments;
}

bool Supplier::supply(Slot& slot, Effect& effect) {
    if (!slot.length_known || (slot.state == SlotState::finished && !slot.retained)) return false;
    const std::uint32_t longest = std::max<std::uint32_t>(
        1, (core_.config.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes)) /
               core_.config.fragment_bytes);
    const std::uint32_t limit = supply_limit(slot);
    for (Slot::Client& client : slot.known_clients()) {
        FragmentSet& wanted = client.wanted;
        if (wanted.empty()) continue;
        std::uint32_t from = wanted.first();
        while (from < wanted.to && !slot.has(from)) from = wanted.after(from);
        if (from >= std::min(wanted.to, limit) || keeps(slot, client, from)) continue;
        std::uint32_t to = from;
        while (to < std::min(wanted.to, limit) && to - from < longest && wanted.bits.test(to) && slot.has(to))
            wanted.bits.clear(to++);
        client.served = true;
        ++core_.counters.data_sent;
        core_.counters.fragments_supplied += to - from;
        return core_.message(effect, wire::Kind::data, client.rank, slot.id, from,
                             core_.announced_total(slot), core_.fragments_of(slot, from, to));
    }
    return false;
}

}  // namespace mcastcoll::engine
