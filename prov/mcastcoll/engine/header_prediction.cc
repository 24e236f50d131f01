#include "engine/header_prediction.h"

#include <algorithm>

#include "wire/bytes.h"

namespace mcastcoll::engine {

// No fragment is missing, and no repair is under way.
bool HeaderPrediction::in_order(const Slot& slot) const {
    return core_.phase == Phase::active && core_.now == turn_ && slot.id == operation_ &&
           slot.state == SlotState::active && slot.base == next_ && slot.reception.revealed == next_ &&
           !slot.have.test(next_) && !slot.have.test(next_ + 1) && slot.naks.requested_to == 0 &&
           !slot.naks.chained && slot.parity_rows == 0 && slot.root_naks.sent_at == kNever;
}

void HeaderPrediction::expect(std::uint32_t index) {
    next_ = index;
    wire::put(head_.data() + wire::kFragmentOffset, index);
}

void HeaderPrediction::predict_after(const wire::Header& header, Bytes packet) {
    next_ = end_ = 0;
    const bool release = header.kind == wire::Kind::release;
    if (header.kind != wire::Kind::fragment && !release) return;
    Slot* const slot = core_.slots.find_active(header.operation);
    if (slot == nullptr || !core_.large(*slot)) return;
    // A packet that was refused predicts nothing.
    if (slot->operation.root != header.sender || releases(slot->operation.kind) != release ||
        length_of(header) != slot->bytes || is_repeated(header))
        return;
    slot_ = slot;
    operation_ = slot->id;
    turn_ = core_.now;
    std::memcpy(head_.data(), packet.data(), head_.size());
    expect(index_of(header.fragment) + 1);
    if (slot->repair_mode.silence_factor > 1 || !in_order(*slot)) return;
    // The slow path takes over where the next report is due, where silence starts to mean that the root waits
    // for reports, and at the end.
    const std::uint32_t step = core_.config.report_step(slot->fragments), window = core_.config.window;
    end_ = std::min(slot->fragments - 1, (next_ / step + 1) * step - 1);
    if (next_ < window) end_ = std::min(end_, window - 1);
}

}  // namespace mcastcoll::engine
