#include "engine/sender.h"

#include <cstring>

namespace mcastcoll::engine {

void Sender::advance(Slot& slot) {
    const std::uint64_t ready = std::min(slot.operation.ready, slot.bytes);
    const bool all = ready == slot.bytes;
    if (!core_.large(slot)) {
        if (!all) return;
        if (slot.bytes > 0) std::memcpy(core_.slots.buffer(slot), slot.operation.buffer, slot.bytes);
        slot.retained = true;
    }
    const std::uint32_t base =
        all ? slot.fragments : static_cast<std::uint32_t>(ready / core_.config.fragment_bytes);
    if (base <= slot.base) return;
    slot.base = base;
    slot.progress_at = core_.now;
    core_.mark(slot);
    if (all)
        supplier_.on_all_here(slot);
    else
        flow_.update(slot);
    holds_.release();
}

// End of the fragments that this member may multicast now.
std::uint32_t Sender::limit(const Slot& slot) const {
    if (!core_.is_root(slot)) return slot.base;
    if (slot.multicasting.held || slot.operation.kind == CollectiveKind::reduce) return 0;
    return core_.graph_of(slot).multicasts(core_.self()) ? std::min(flow_.limit(slot), slot.base) : 0;
}

bool Sender::make_multicast(Slot& slot, Effect& effect) {
    if (next_resend(slot, effect)) return true;
    if (slot.multicasting.parity_due()) return next_parity(slot, effect);
    const bool large = core_.large(slot), root = core_.is_root(slot);
    if (root && large && flow_.is_full(slot)) return false;
    const std::uint32_t index = slot.multicasting.next;
    if (index >= limit(slot)) return next_copy(slot, effect);
    make_fragment(slot, index, effect);
    if (!take_range(slot, effect, slot.multicasting.target)) return true;
    ++slot.multicasting.next;
    if (root && slot.multicasting.next % kBlockFragments == 0) end_block(slot);
    if (slot.multicasting.next == slot.fragments) {
        if (root && slot.fragments % kBlockFragments != 0) end_block(slot);
        slot.multicasting.copies = core_.redundancy.copies(slot.fragments);
        await_copy(slot);
    }
    core_.counters.fragments_relayed += !root;
    if (large && root) flow_.sent();
    if (large && !root) flow_.check_finished(slot);
    return true;
}

// Sets the range of a fragment. False: the fragment goes to another address next.
bool Sender::take_range(const Slot& slot, Effect& effect, std::uint32_t& target) const {
    if (core_.is_root(slot) && !core_.graph_of(slot).relayed()) return core_.take_target(target, effect);
    effect.range = core_.config.range(core_.self());
    return true;
}

// A whole block of a longer message has been sent: schedules its parity.
void Sender::end_block(Slot& slot) {
    Slot::Multicasting& mine = slot.multicasting;
    if (slot.fragments <= RedundancyPolicy::kMaxCopied || core_.graph_of(slot).relayed()) return;
    mine.parity_of = (mine.next - 1) / kBlockFragments * kBlockFragments;
    mine.parity_row = 0;
    mine.parity_rows = core_.redundancy.parity(mine.next - mine.parity_of);
}

bool Sender::next_parity(Slot& slot, Effect& effect) {
    Slot::Multicasting& mine = slot.multicasting;
    const Bytes block =
        core_.fragments_of(slot, mine.parity_of, std::min(mine.parity_of + kBlockFragments, slot.fragments));
    std::byte*& row = rows_[next_row_];
    next_row_ = (next_row_ + 1) % rows_.size();
    if (row == nullptr) row = parity_.take();
    const Bytes made = code_.encode(block, mine.parity_row);
    std::memcpy(row, made.data(), made.size());
    core_.packet(effect, wire::Kind::parity, slot.id, mine.parity_of + mine.parity_row,
                 core_.announced_total(slot), Bytes(row, core_.config.fragment_bytes));
    ++core_.counters.parity_sent;
    if (take_range(slot, effect, mine.target)) ++mine.parity_row;
    return true;
}

// Where losses come in bursts, a copy is sent when the burst may be over and well before any NAK.
void Sender::await_copy(Slot& slot) {
    Slot::Multicasting& mine = slot.multicasting;
    if (mine.copies == 0 || !core_.redundancy.spreads()) return;
    mine.copy_waits = delayed_copies_.push({slot.id, core_.now + core_.deadlines.copy()});
}

void Sender::on_timeout() {
    for (; !delayed_copies_.empty() && delayed_copies_.front().at <= core_.now; delayed_copies_.pop()) {
        Slot* const slot = core_.slots.find(delayed_copies_.front().operation);
        if (slot == nullptr) continue;
        slot->multicasting.copy_waits = false;
        core_.mark(*slot);
    }
}

// Sends a short message once more, after the whole message.
bool Sender::next_copy(Slot& slot, Effect& effect) {
    Slot::Multicasting& mine = slot.multicasting;
    if (!mine.copies_due() || mine.next < slot.fragments) return false;
    make_fragment(slot, mine.copied, effect, true);
    ++core_.counters.copies_sent;
    if (!take_range(slot, effect, mine.target) || ++mine.copied < slot.fragments) return true;
    mine.copied = 0;
    --mine.copies;
    await_copy(slot);
    return true;
}

void Sender::make_fragment(const Slot& slot, std::uint32_t index, Effect& effect, bool repeated) {
    const wire::Kind kind = !core_.is_root(slot)            ? wire::Kind::relay
                            : releases(slot.operation.kind) ? wire::Kind::release
                                                            : wire::Kind::fragment;
    core_.packet(effect, kind, slot.id, index,
                 core_.announced_total(slot) | (repeated ? wire::kRepeatFlag : 0),
                 core_.fragments_of(slot, index, index + 1));
}

// On the root: whether a NAK requests a retransmission.
bool Sender::resends(const Slot& slot) const {
    return !slot.root_naks.due.empty() && core_.is_root(slot) &&
           core_.graph_of(slot).multicasts(core_.self());
}

// A retransmission goes to every address, relayed or not.
bool Sender::next_resend(Slot& slot, Effect& effect) {
    if (!resends(slot)) return false;
    Slot::RootNaks& root_naks = slot.root_naks;
    while (root_naks.due.first() < root_naks.due.to) {
        const std::uint32_t index = root_naks.due.from;
        const bool wanted = slot.multicasting.may_repeat(index);
        if (wanted) {
            ++core_.counters.fragments_resent;
            make_fragment(slot, index, effect, true);
            if (!core_.take_target(root_naks.target, effect)) return true;
            root_naks.named.set(index);
        }
        root_naks.due.drop_below(index + 1);
        root_naks.target = 0;
        if (wanted) return true;
    }
    return false;
}

}  // namespace mcastcoll::engine
