// Groups that speak to several addresses, each the range of some of their ranks (ranges.h has which and why).
//
// Chained, a root multicasts every fragment to one range after the other. As a tree, it multicasts to its own
// range only, and each other range has a leader that is supplied with messages like a deaf member, and
// multicasts onward to its range what it has. To the rest of the protocol a leader is deaf to roots of other
// ranges and everybody else hears, so that ring, reports and repair work as they do for one address.
//
// A leader is never further ahead of its range than a root may be: the root supplies nobody beyond the window
// that it would multicast in.
#include <algorithm>
#include <cassert>

#include "engine/engine.h"

namespace mcastcoll::engine {

// The ranges that somebody else listens to.
std::vector<std::uint32_t> Engine::other_ranges(const GroupConfig& config) {
    std::vector<std::uint32_t> ranges;
    for (std::uint32_t range = 0; range < config.ranges; ++range)
        for (std::uint32_t i = 0; i < config.members; ++i)
            if (rank_of(i) != config.self && config.range(rank_of(i)) == range) {
                ranges.push_back(range);
                break;
            }
    return ranges;
}

// Up to which fragment this member may multicast now.
std::uint32_t Engine::multicast_limit(const Slot& slot) const {
    if (relays(slot)) return slot.base;
    if (slot.state < SlotState::active || !slot.is_root(config_.self) || slot.held) return 0;
    if (slot.operation.kind == CollectiveKind::reduce) return 0;
    return graph_of(slot).multicasts(config_.self) ? std::min(window_limit(slot), slot.base) : 0;
}

// The next of the addresses that a datagram goes to; true when it is the last of them.
bool Engine::take_target(std::uint32_t& next, Effect& effect) const {
    effect.range = targets_[next];
    if (++next < targets_.size()) return false;
    next = 0;
    return true;
}

bool Engine::next_relay(Slot& slot, Effect& effect) {
    if (slot.next_multicast >= slot.base || (is_large(slot) && slot.state == SlotState::finished))
        return false;
    const std::uint32_t index = slot.next_multicast++;
    ++counters_.fragments_relayed;
    make_packet(effect, wire::Kind::relay, slot.id, index, announced_total(slot),
                fragment_bytes(slot, index, index + 1));
    effect.range = config_.range(config_.self);
    if (is_large(slot)) check_large_finished(slot);
    return true;
}

// Up to which fragment others are supplied with what is here. Leaders multicast what they get at once.
std::uint32_t Engine::supply_limit(const Slot& slot) const {
    const bool leads = slot.state >= SlotState::active && slot.is_root(config_.self) &&
                       graph_of(slot).relayed() && graph_of(slot).multicasts(config_.self);
    return leads ? window_limit(slot) : slot.fragments;
}

}  // namespace mcastcoll::engine
