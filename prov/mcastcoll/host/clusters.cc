// Barriers by clusters (NUMA nodes, shared caches) where every member has a core of its own.
//
// Flat, every member reads every other's line, most of them from another node. By clusters, in the same step,
// the first member of each cluster waits for its own, and only then publishes for them; everybody waits for
// the leaders:
//
//     members   publish "here"                   read one line per cluster
//     leaders   read their cluster's lines, then publish "all of us"
//
// Of the levels told, the one is taken that leaves a leader the fewest lines to read (its cluster's and the
// other leaders'; after Karonis and others a leader per cluster, here without a tree above, since a host has
// few nodes). With more members than cores it stays flat: the leader would be one more context switch.
#include <algorithm>
#include <map>

#include "host/team.h"

namespace mcastcoll::host {
namespace {

using Ids = std::vector<std::uint32_t>;

// By member: the first member of its cluster, down to so many levels.
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

// Member 0's: writes everybody's leader into his card.
void Team::choose_leaders() {
    Ids best(size_);
    for (std::uint32_t member = 0; member < size_; ++member) best[member] = member;
    std::size_t least = size_, levels = 0;
    for (const Ids& ids : config_.clusters) levels = std::max(levels, ids.size());
    for (std::size_t depth = 1; depth <= levels && header_.agreement.crowded == 0; ++depth) {
        Ids leaders = leaders_at(config_.clusters, depth);
        if (cost_of(leaders) >= least) continue;
        least = cost_of(leaders);
        best = std::move(leaders);
    }
    for (std::uint32_t member = 0; member < size_; ++member) peers_[member].card->leader = best[member];
}

void Team::adopt_leaders() {
    for (std::uint32_t member = 0; member < size_; ++member) {
        const std::uint32_t leader = peers_[member].card->leader;
        if (leader == member)
            leaders_.push_back(member);
        else if (leader == self_)
            cluster_.push_back(member);
    }
    // Everybody leads himself: flat.
    if (leaders_.size() == size_) leaders_.clear();
}

Team::Advance Team::barrier(Operation& operation) {
    const bool leads = peers_[self_].card->leader == self_;
    bool moved = false;
    if (!course_.begun) {
        if (!may_write(step_, kLines)) return Advance::idle;
        publish(step_, Kind::barrier, leads && cluster_.empty(), 0);
        course_.begun = moved = true;
        ++counters_.inline_steps;
    }
    for (; course_.next_reduced < cluster_.size(); ++course_.next_reduced) {
        if (look(cluster_[course_.next_reduced], step_, Kind::barrier) == 0)
            return moved ? Advance::moved : Advance::idle;
        if (course_.next_reduced + 1 == cluster_.size()) publish(step_, Kind::barrier, true, 0);
    }
    for (; course_.next < leaders_.size(); ++course_.next) {
        const std::uint64_t word = look(leaders_[course_.next], step_, Kind::barrier);
        if (Word::final(word)) continue;
        blocker_ = leaders_[course_.next];
        return moved ? Advance::moved : Advance::idle;
    }
    // Who is in this step has left all before, and all are in it.
    watermark_ = std::max(watermark_, step_);
    leave(step_);
    return finish(operation, 1);
}

}  // namespace mcastcoll::host
