#include "engine/slots.h"

namespace mcastcoll::engine {

Slots::Slots(const GroupConfig& config, std::uint32_t children)
    : retransmit_memory_(config.memory, std::size_t{config.operation_slots} * config.retransmit_bytes) {
    slots_.reserve(config.operation_slots);
    for (std::uint32_t i = 0; i < config.operation_slots; ++i) {
        std::byte* const buffer = retransmit_memory_.get() + std::size_t{i} * config.retransmit_bytes;
        slots_.emplace_back(config, MutableBytes(buffer, config.retransmit_bytes), children);
        slots_.back().id = operation_of(i);
    }
}

// Callers ask for the same one again and again, or for one after the other, so the last answer is tried
// first, and then what came next.
const Slot* Slots::find(std::uint64_t cookie) const {
    const auto matches = [&](std::uint64_t id) {
        const Slot& slot = at(id);
        return slot.id == operation_of(id) && slot.state >= SlotState::active &&
               slot.operation.cookie == cookie;
    };
    for (std::uint64_t id = std::max(found_, kept_); id < std::min(found_ + 3, next_); ++id)
        if (at(id).state == SlotState::active && matches(id)) return &at(found_ = id);
    for (std::uint64_t id = next_; id-- > kept_;)
        if (matches(id)) return &at(found_ = id);
    return nullptr;
}

}  // namespace mcastcoll::engine
