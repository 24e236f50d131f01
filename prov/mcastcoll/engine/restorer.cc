#include "engine/restorer.h"

#include <cstring>

namespace mcastcoll::engine {

Restorer::Restorer(Core& core)
    : core_(core),
      code_(core.config.fragment_bytes),
      memory_(core.config.memory, core.config.parity_buffers, core.config.fragment_bytes) {
    kept_.reserve(core.config.parity_buffers);
}

bool Restorer::take(Slot& slot, std::uint32_t first, std::uint32_t row, Bytes parity) {
    return keep(slot, first, row, parity) && try_restore(slot, first);
}

// Without a free buffer the oldest row is replaced: its block most likely is over.
bool Restorer::keep(Slot& slot, std::uint32_t first, std::uint32_t row, Bytes parity) {
    const auto same = [&](const Kept& kept) {
        return kept.operation == slot.id && kept.first == first && kept.row.row == row;
    };
    if (std::ranges::any_of(kept_, same)) return drop(core_.counters.duplicates), false;
    std::byte* bytes = memory_.take();
    if (bytes == nullptr && !kept_.empty()) {
        if (Slot* oldest = core_.slots.find(kept_.front().operation)) --oldest->parity_rows;
        bytes = kept_.front().row.bytes;
        kept_.erase(kept_.begin());
    }
    if (bytes == nullptr) return false;
    std::memcpy(bytes, parity.data(), parity.size());
    kept_.push_back({slot.id, first, {row, bytes}});
    ++slot.parity_rows;
    return true;
}

void Restorer::drop_rows(Slot& slot, std::uint32_t first) {
    const auto goes = [&](const Kept& kept) {
        return kept.operation == slot.id && (first == kWholeMessage || kept.first == first);
    };
    for (Kept& kept : kept_) {
        if (!goes(kept)) continue;
        memory_.give_back(kept.row.bytes);
        --slot.parity_rows;
    }
    std::erase_if(kept_, goes);
}

// Address of the block's fragments, or null: of a long message that is not posted, only the first window is
// kept.
std::byte* Restorer::begin_of(Slot& slot, std::uint32_t first, std::uint32_t count) {
    const bool large = core_.large(slot);
    if (large && slot.state != SlotState::active && first + count > core_.config.window) return nullptr;
    if (first + count - slot.base > slot.have.capacity()) return nullptr;
    std::byte* const data = large ? core_.data_of(slot) : core_.slots.buffer(slot);
    return data == nullptr ? nullptr : data + std::uint64_t{first} * core_.config.fragment_bytes;
}

bool Restorer::try_restore(Slot& slot, std::uint32_t first) {
    restored_ = 0;
    const std::uint32_t end = std::min(first + kBlockFragments, slot.fragments);
    std::array<ParityRow, kMaxParity> rows{};
    std::size_t count = 0, lacking = 0;
    for (const Kept& kept : kept_)
        if (kept.operation == slot.id && kept.first == first) rows[count++] = kept.row;
    if (count == 0) return false;
    for (std::uint32_t index = first; index < end; ++index) {
        if (slot.has(index)) continue;
        if (lacking == count) return false;
        missing_[lacking++] = index;
    }
    std::byte* const block = lacking > 0 ? begin_of(slot, first, end - first) : nullptr;
    if (block != nullptr) {
        const std::uint64_t from = std::uint64_t{first} * core_.config.fragment_bytes;
        const std::uint64_t to = std::min(slot.bytes, std::uint64_t{end} * core_.config.fragment_bytes);
        std::array<std::uint32_t, kMaxParity> places{};
        for (std::size_t i = 0; i < lacking; ++i) places[i] = missing_[i] - first;
        code_.restore({block, to - from}, {places.data(), lacking}, {rows.data(), lacking});
        restored_ = lacking;
        core_.counters.fragments_restored += lacking;
    }
    if (lacking == 0 || block != nullptr) drop_rows(slot, first);
    return restored_ > 0;
}

}  // namespace mcastcoll::engine
