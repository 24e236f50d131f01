#include "engine/slots.h"

namespace mcastcoll::engine {

Slots::Slots(const GroupConfig& config, std::uint32_t children)
    : buffers_(config.memory, config.operation_slots, config.retransmit_bytes),
      vectors_(config.memory, std::size_t{config.operation_slots} * children, config.max_gathered()),
      late_copies_(config.memory, config.late_copies, config.late_bytes) {
    slots_.reserve(config.operation_slots);
    for (std::uint32_t i = 0; i < config.operation_slots; ++i) {
        slots_.emplace_back(config, children);
        slots_.back().id = operation_of(i);
    }
}

void Slots::renew(Slot& slot, OperationId operation) {
    if (slot.gathered())
        for (Slot::Contribution& contribution : slot.gathering.contributions)
            vectors_.give_back(contribution.early);
    slot.reset(operation);
}

}  // namespace mcastcoll::engine
