// Barriers by clusters (NUMA nodes, shared caches) where every member has a core of its own.
//
// In a flat barrier every member reads every other line, mostly from another node. By clusters, in the same
// step, the first member of each cluster waits for the cluster's members before publishing, and every member
// waits for the leaders:
//
//     members   publish "here"                   read one line per cluster
//     leaders   read their cluster's lines, then publish "all of us"
//
// One leader per cluster follows Karonis and others; there is no tree above, since a host has few nodes. With
// more members than cores the barrier stays flat: the leader would add a context switch.
#include <algorithm>
#include <map>
#include <numeric>

#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

using Ids = Clusters::Ids;

// By member: the first member of its cluster, down to this number of levels.
Ids leaders_at(const std::vector<Ids>& clusters, std::size_t levels) {
    std::map<Ids, std::uint32_t> first;
    Ids leaders;
    for (const Ids& ids : clusters) {
        const auto depth = static_cast<std::ptrdiff_t>(std::min(levels, ids.size()));
        const auto member = static_cast<std::uint32_t>(leaders.size());
        leaders.push_back(first.try_emplace(Ids(ids.begin(), ids.begin() + depth), member).first->second);
    }
    return leaders;
}

// Lines that the busiest leader reads.
std::size_t cost_of(const Ids& leaders) {
    std::map<std::uint32_t, std::size_t> sizes;
    for (const std::uint32_t leader : leaders) ++sizes[leader];
    std::size_t largest = 0;
    for (const auto& [leader, size] : sizes) largest = std::max(largest, size);
    return sizes.size() + largest;
}

}  // namespace

Clusters::Ids Clusters::choose_leaders(const std::vector<Ids>& ids, std::uint32_t members) {
    Ids best(members);
    std::iota(best.begin(), best.end(), 0);
    std::size_t min = members, levels = 0;
    for (const Ids& own : ids) levels = std::max(levels, own.size());
    for (std::size_t depth = 1; depth <= levels; ++depth) {
        Ids leaders = leaders_at(ids, depth);
        if (cost_of(leaders) >= min) continue;
        min = cost_of(leaders);
        best = std::move(leaders);
    }
    return best;
}

Clusters Clusters::of(std::uint32_t self, const Ids& leader_of) {
    Clusters found;
    found.leads = leader_of[self] == self;
    for (std::uint32_t member = 0; member < leader_of.size(); ++member) {
        if (leader_of[member] == member)
            found.leaders.push_back(member);
        else if (leader_of[member] == self)
            found.led.push_back(member);
    }
    // Every member leads itself: flat.
    if (found.leaders.size() == leader_of.size()) found.leaders.clear();
    return found;
}

Advance barrier_by_clusters(Context& c, Operation&) {
    const Clusters::Ids &led = c.clusters.led, &leaders = c.clusters.leaders;
    Cursor& at = c.cursor;
    bool moved = false;
    if (at.phase == Cursor::Phase::fresh) {
        if (!c.rings.may_write_line(c.step)) return Advance::idle;
        c.rings.publish(c.step, Kind::barrier, c.clusters.leads && led.empty(), 0);
        at.phase = Cursor::Phase::published;
        moved = true;
    }
    for (; at.next_seen < led.size(); ++at.next_seen) {
        if (c.rings.look(led[at.next_seen], c.step, Kind::barrier) == 0) return moved_or_idle(moved);
        if (at.next_seen + 1 == led.size()) c.rings.publish(c.step, Kind::barrier, true, 0);
    }
    for (; at.next < leaders.size(); ++at.next) {
        if (Word::final(c.rings.look(leaders[at.next], c.step, Kind::barrier))) continue;
        c.rings.await(leaders[at.next]);
        return moved_or_idle(moved);
    }
    c.rings.all_are_in(c.step);
    c.rings.leave(c.step);
    return c.finish(1);
}

}  // namespace mcastcoll::host
