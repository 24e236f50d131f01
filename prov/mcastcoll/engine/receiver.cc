#include "engine/receiver.h"

#include <cerrno>
#include <cstring>

#include "base/cache.h"

namespace mcastcoll::engine {
namespace {

// Small messages are sent to deaf members unsolicited, so a deaf member sends a NAK only after this multiple
// of the usual time.
constexpr std::uint32_t kDeafSilenceFactor = 4;
// Prefetch distance in fragments for the caller's buffer, which is in no cache; a prefetch for the very next
// fragment is too late (docs/PERF.md).
constexpr std::uint32_t kAhead = 2;

}  // namespace

void Receiver::adopt_early(Slot& slot, bool keep) {
    if (!keep) restorer_.forget(slot);
    if (slot.early == nullptr) return;
    const std::uint64_t size = core_.config.fragment_bytes;
    for (std::uint32_t index = 0; keep && index < std::min(slot.fragments, core_.config.window); ++index) {
        if (!slot.has(index)) continue;
        const std::uint64_t at = index * size;
        std::memcpy(slot.operation.buffer + at, slot.early + at, std::min(size, slot.bytes - at));
    }
    early_buffers_.give_back(slot.early);
}

void Receiver::begin(Slot& slot) {
    if (slot.complete_here()) return supplier_.on_all_here(slot);
    flow_.update(slot);
    const bool silent = !core_.receives(slot) || core_.suspicion.silent(slot.operation.root);
    const bool comes_unsolicited = core_.comes_unsolicited(slot);
    const std::int64_t silence_factor =
        comes_unsolicited ? std::max(slot.repair_mode.silence_factor, kDeafSilenceFactor) : 1;
    slot.naks.chained = silent || slot.repair_mode.chained;
    if (slot.naks.chained && (!comes_unsolicited || slot.base < slot.reception.revealed))
        return repairer_.request(slot, slot.fragments);
    const bool hole = !comes_unsolicited && (slot.base < slot.reception.revealed || later_was_received(slot));
    slot.naks.at = core_.now + (hole ? core_.deadlines.gap() : core_.deadlines.silence(slot, silence_factor));
    // A client's NAK is waiting already.
    if (slot.has_waiting_client()) repairer_.forward_nak(slot);
}

// Returns true, and treats the whole operation as sent, if a packet of a later operation of the same root
// arrived before this one was posted.
bool Receiver::later_was_received(Slot& slot) {
    if (core_.large(slot)) return false;
    for (std::uint64_t id = number_of(slot.id) + 1; id < core_.slots.early_end(); ++id) {
        if (core_.slots.at(id).id != operation_of(id) ||
            core_.slots.at(id).reception.early_root != slot.operation.root)
            continue;
        slot.reception.revealed = slot.fragments;
        return true;
    }
    return false;
}

bool Receiver::take_predicted(Bytes packet) {
    Slot* const slot = prediction_.match(packet);
    if (slot == nullptr) return false;
    put(*slot, slot->base, packet.subspan(wire::kHeaderBytes));
    slot->reception.revealed = ++slot->base;
    ++slot->reception.firsts;
    ++slot->reception.stored;
    ++slot->reception.count;
    ++core_.counters.fragments_by_multicast;
    core_.mark(*slot);
    prediction_.advance();
    return true;
}

void Receiver::on_fragment(const wire::Header& header, Bytes payload) {
    const bool relayed = header.kind == wire::Kind::relay;
    // A leader relays in no particular order.
    if (!relayed) reveal_earlier(header.sender, number_of(header.operation));
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::finished) {
        if (!core_.is_root(*slot) && core_.receives(*slot)) note_late(*slot, is_repeated(header));
        return drop(core_.counters.duplicates);
    }
    const std::uint32_t index = index_of(header.fragment);
    const bool release = header.kind == wire::Kind::release;
    const bool posted = slot->state == SlotState::active;
    const bool wrong_sender = relayed ? !may_relay(header.sender)
                                      : posted && (slot->operation.root != header.sender ||
                                                   releases(slot->operation.kind) != release);
    if (wrong_sender || cannot_come(*slot, index) || !fits(*slot, header, 1, payload))
        return drop(core_.counters.bad_fragment);
    if (!posted && !relayed) {
        slot->reception.early_root = header.sender;
        core_.slots.note_early(number_of(header.operation));
    }
    slot->note_partial(is_partial(header));
    slot->reception.firsts += is_repeated(header) ? 0 : 1;
    root_repairer_.on_multicast(*slot, index);
    if (store(*slot, index, payload)) {
        ++core_.counters.fragments_by_multicast;
        ++slot->reception.stored;
        if (restorer_.on_fragment(*slot, index)) take_restored(*slot);
    }
    ++slot->reception.count;
    note_multicast(*slot, index + 1);
    after_store(*slot);
}

// The fragment was requested as lost, and was only late. The counters do not record which fragments were
// missing, so in a message of several fragments any late one counts.
void Receiver::note_late(Slot& slot, bool repeated) {
    Slot::Reception& reception = slot.reception;
    const std::uint32_t first = !repeated && reception.firsts < slot.fragments ? 1 : 0;
    const std::uint32_t any = reception.stored < slot.fragments ? 1 : 0;
    reception.firsts += first;
    reception.stored += any;
    core_.redundancy.meter().note_late(first, any, slot.fragments);
}

// A parity row. The header's fragment number is the block's first fragment plus the row number; blocks begin
// at multiples of kBlockFragments.
void Receiver::on_parity(const wire::Header& header, Bytes payload) {
    reveal_earlier(header.sender, number_of(header.operation));
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr || slot->state == SlotState::finished) return;
    const std::uint32_t row = index_of(header.fragment) % kBlockFragments;
    const std::uint32_t first = index_of(header.fragment) - row;
    const bool posted = slot->state == SlotState::active;
    const Rank root = posted ? slot->operation.root : slot->reception.early_root;
    const bool wrong = (posted || root != kNoRank) && root != header.sender;
    if (wrong || core_.config.parity_buffers == 0 || row >= kMaxParity ||
        payload.size() != core_.config.fragment_bytes || cannot_come(*slot, first) ||
        !learn_length(*slot, header) || first >= slot->fragments)
        return drop(core_.counters.bad_fragment);
    if (posted && core_.is_root(*slot)) return drop(core_.counters.bad_fragment);
    if (!posted) {
        slot->reception.early_root = header.sender;
        core_.slots.note_early(number_of(header.operation));
    }
    slot->note_partial(is_partial(header));
    const std::uint32_t end = std::min(first + kBlockFragments, slot->fragments);
    if (slot->complete_here()) return;  // complete before the post
    if (restorer_.take(*slot, first, row, payload)) take_restored(*slot);
    note_multicast(*slot, end);
    if (posted && slot->base < end && row + 1 >= core_.redundancy.parity(end - first))
        repairer_.arm_gap(*slot);  // no further row of this block will come
    after_store(*slot);
}

// Marks the restored fragments as received.
void Receiver::take_restored(Slot& slot) {
    for (const std::uint32_t index : restorer_.restored()) note_here(slot, index);
    slot.reception.stored += static_cast<std::uint32_t>(restorer_.restored().size());
}

bool Receiver::learn_length(Slot& slot, const wire::Header& header) {
    const std::uint64_t bytes = length_of(header), size = core_.config.fragment_bytes;
    if (slot.length_known ? slot.bytes != bytes : bytes / size >= UINT32_MAX / 2) return false;
    if (!std::exchange(slot.length_known, true)) {
        slot.state = SlotState::early;
        slot.bytes = bytes;
        slot.fragments = core_.config.fragments(bytes);
    }
    return true;
}

// Whether the payload consists of `count` fragments of the message, from the header's fragment on. Stores the
// message's length if it is unknown, else compares it.
bool Receiver::fits(Slot& slot, const wire::Header& header, std::uint32_t count, Bytes payload) {
    if (!learn_length(slot, header)) return false;
    const std::uint64_t size = core_.config.fragment_bytes;
    const std::uint64_t first = index_of(header.fragment);
    return first + count <= slot.fragments &&
           payload.size() == std::min(count * size, slot.bytes - first * size);
}

// Whether no member can have sent this fragment to this member: a reduce has no data for receivers, and a
// root receives only fragments that it has sent.
bool Receiver::cannot_come(const Slot& slot, std::uint32_t index) const {
    if (slot.state < SlotState::active) return false;
    return slot.operation.kind == CollectiveKind::reduce || (core_.is_root(slot) && !slot.has(index));
}

// Evaluates what a multicast fragment or parity row proves besides its data: the path works, and the root has
// sent all fragments below `end`.
void Receiver::note_multicast(Slot& slot, std::uint32_t end) {
    slot.reception.lately = true;
    slot.naks.suspected = false;
    slot.naks.reach = 0;
    slot.naks.tested = kNothingTested;
    const bool in_order = end > slot.reception.revealed;  // neither late nor a retransmission
    slot.reception.revealed = std::max(slot.reception.revealed, end);
    const bool first = !std::exchange(slot.reception.ever, true);
    const Nanoseconds before = std::exchange(slot.reception.at, core_.now);
    if (slot.state != SlotState::active) return;
    if (first) core_.deadlines.on_first(slot, core_.now);
    if (!first && in_order && core_.now > before) {  // packets read in one turn have no gaps
        core_.deadlines.on_gap(slot, core_.now - before);
        slot.reception.longest_gap = std::max(slot.reception.longest_gap, core_.now - before);
    }
    if (slot.repair_mode.chained || slot.repair_mode.silence_factor > 1) return;
    slot.naks.chained = false;
    if (slot.base < slot.reception.revealed && !awaits_spares(slot))
        repairer_.arm_gap(slot);
    else
        slot.naks.at = core_.now + core_.deadlines.silence(slot);
}

// The missing data may still arrive without a NAK, as copies or parity, as long as the root goes on sending.
bool Receiver::awaits_spares(const Slot& slot) const {
    if (slot.fragments <= RedundancyPolicy::kMaxCopied) return core_.redundancy.copies(slot.fragments) > 0;
    const std::uint32_t first = slot.base - slot.base % kBlockFragments;
    return core_.redundancy.parity(kBlockFragments) > 0 && slot.reception.revealed <= first + kBlockFragments;
}

// A root multicasts its small operations in order: a packet of a later operation shows that earlier ones were
// sent.
void Receiver::reveal_earlier(Rank sender, std::uint64_t before) {
    for (std::uint64_t id = core_.slots.first_open(); id < std::min(before, core_.slots.next()); ++id) {
        Slot& slot = core_.slots.at(id);
        if (slot.state != SlotState::active || slot.operation.root != sender || core_.large(slot)) continue;
        if (slot.repair_mode.silence_factor > 1 || slot.complete_here()) continue;
        slot.reception.revealed = slot.fragments;
        repairer_.arm_gap(slot);
    }
}

// Stores a fragment. Returns false for a duplicate, or if there is no room for the fragment.
bool Receiver::store(Slot& slot, std::uint32_t index, Bytes payload) {
    if (slot.has(index)) {
// A fault for the simulator to detect: a duplicate counts as a new fragment.
#ifdef MCC_BREAK_DUPLICATE_CHECK
        if (slot.base < slot.fragments) ++slot.base;
        return true;
#endif
        ++core_.counters.duplicates;
        return false;
    }
    if (index - slot.base >= slot.have.capacity()) return drop(core_.counters.beyond_window), false;
    if (core_.large(slot) && slot.state != SlotState::active) {
        if (slot.early == nullptr) slot.early = early_buffers_.take();
        if (slot.early == nullptr || index >= core_.config.window)
            return drop(core_.counters.unposted_dropped), false;
    }
    if (!payload.empty()) put(slot, index, payload);
    note_here(slot, index);
    return true;
}

void Receiver::put(Slot& slot, std::uint32_t index, Bytes payload) {
    std::byte* const data = core_.large(slot) ? core_.data_of(slot) : core_.slots.buffer(slot);
    const std::uint64_t size = core_.config.fragment_bytes;
    std::byte* const place = data + index * size;
    std::memcpy(place, payload.data(), payload.size());
    // Fragments mostly arrive in order.
    if (core_.large(slot) && index + kAhead + 1 < slot.fragments)
        prefetch_to_write(place + kAhead * size, size);
}

void Receiver::note_here(Slot& slot, std::uint32_t index) {
    slot.have.set(index);
    slot.progress_at = core_.now;
    while (slot.base < slot.fragments && slot.have.test(slot.base)) {
        slot.have.clear(slot.base);
        slot.naks.requested.clear(slot.base);
        ++slot.base;
    }
    core_.mark(slot);  // a client may be waiting for the fragment
}

void Receiver::after_store(Slot& slot) {
    if (slot.state != SlotState::active) return;
    if (slot.complete_here()) {
        restorer_.forget(slot);
        return supplier_.on_all_here(slot);
    }
    flow_.update(slot);
    repairer_.continue_chain(slot);
}

void Receiver::on_data(const wire::Header& header, Bytes payload) {
    Slot* slot = core_.claim(header.operation);
    if (slot == nullptr) return;
    if (slot->state == SlotState::finished) return drop(core_.counters.duplicates);
    if (slot->state == SlotState::active && length_of(header) != slot->bytes)
        return core_.fail(kNoRank, EMSGSIZE);
    const std::uint32_t first = index_of(header.fragment);
    const std::uint32_t count = core_.config.fragments(payload.size());
    if (!fits(*slot, header, count, payload) || cannot_come(*slot, first + count - 1))
        return drop(core_.counters.bad_fragment);
    slot->note_partial(is_partial(header));
    repairer_.on_data(*slot, first, count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t offset = std::size_t{i} * core_.config.fragment_bytes;
        const Bytes bytes = payload.subspan(
            offset, std::min<std::size_t>(core_.config.fragment_bytes, payload.size() - offset));
        if (!store(*slot, first + i, bytes)) continue;
        ++core_.counters.fragments_repaired;
        if (restorer_.on_fragment(*slot, first + i)) take_restored(*slot);
    }
    after_store(*slot);
}

}  // namespace mcastcoll::engine
