// Clusters: members near each other (NUMA nodes, shared caches), and who leads them through a barrier.
#pragma once

#include <cstdint>
#include <vector>

namespace mcastcoll::host {

struct Clusters {
    using Ids = std::vector<std::uint32_t>;

    // By member, its leader. `ids` are each member's clusters, outside in; may be empty. Of the levels the
    // one that leaves a leader the fewest lines to read; everybody leads himself where none is worth it.
    static Ids choose_leaders(const std::vector<Ids>& ids, std::uint32_t members);
    static Clusters of(std::uint32_t self, const Ids& leader_of);

    Ids leaders{};       // none: everybody reads everybody's line
    Ids led{};           // by this member, but itself
    bool leads = false;  // this member does
};

}  // namespace mcastcoll::host
