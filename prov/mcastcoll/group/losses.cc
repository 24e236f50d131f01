#include "group/losses.h"

#include <algorithm>

namespace mcastcoll::group {

std::vector<std::uint32_t> whom_to_tell(const levels::Placement& placement, Rank lost, bool joined) {
    const auto contains = [](const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    };
    std::vector<std::uint32_t> whom;
    if (placement.leads_segment()) whom = placement.segments();
    if (const auto dead = static_cast<std::uint32_t>(index_of(lost)); dead < placement.members()) {
        const bool engine = placement.leads_host() && placement.segment().size() > 1;
        const bool led_segment = contains(placement.segments(), dead);
        const bool led_host_here = placement.host_leader(dead) == dead &&
                                   placement.segment_of(dead) == placement.segment_of(placement.self());
        if (led_segment) whom = placement.segments();
        for (std::uint32_t rank = 0; rank < placement.members(); ++rank) {
            if (engine && contains(placement.segment(), rank)) continue;
            if (placement.host_leader(rank) == dead ||
                (led_segment && placement.segment_of(rank) == placement.segment_of(dead)) ||
                (led_host_here && contains(placement.segment(), rank)))
                whom.push_back(rank);
        }
    }
    if (!joined) {
        whom.push_back(placement.host_leader(placement.self()));
        whom.push_back(placement.segment().front());
        if (placement.leads_host()) whom.insert(whom.end(), placement.host().begin(), placement.host().end());
    }
    std::sort(whom.begin(), whom.end());
    whom.erase(std::unique(whom.begin(), whom.end()), whom.end());
    std::erase(whom, placement.self());
    return whom;
}

}  // namespace mcastcoll::group
