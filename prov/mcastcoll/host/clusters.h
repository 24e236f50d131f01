// Members near each other (NUMA nodes, shared caches), and their leaders in a barrier.
#pragma once

#include <cstdint>
#include <vector>

namespace mcastcoll::host {

struct Clusters {
    using Ids = std::vector<std::uint32_t>;

    // Returns each member's leader. `ids` are each member's clusters, outermost first; may be empty. Chooses
    // the level at which the busiest leader reads the fewest lines. If no level saves lines, each member
    // leads itself.
    static Ids choose_leaders(const std::vector<Ids>& ids, std::uint32_t members);
    static Clusters of(std::uint32_t self, const Ids& leader_of);

    Ids leaders{};       // empty: every member reads every line
    Ids led{};           // the members led by this member, without itself
    bool leads = false;  // this member is a leader
};

}  // namespace mcastcoll::host
