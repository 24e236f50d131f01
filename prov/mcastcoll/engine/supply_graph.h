// The supply graph: for each member, the supplier of data that the multicast did not bring.
//
// Members that receive the root form a ring (Hoefler, Siebert, Rehm 2007, section 2.2) that begins at the
// root, in rank order, without the edge back to the root; each is supplied by its predecessor. Deaf members
// form a tree below the root, with tree_arity (4) children each for small messages and large_tree_arity (1, a
// chain) for large messages, so that no member's bandwidth is divided. No deaf member is supplied by a member
// that may itself wait for a repair. If the root is mute, or the only member that receives, all members are
// in the tree.
//
// Every member computes the same graph from the reachability map and stores only the lists of deaf and mute
// members. With empty lists no search is needed.
#pragma once

#include <utility>
#include <vector>

#include "base/rank_set.h"
#include "base/types.h"
#include "engine/rank_list.h"
#include "engine/reachability_map.h"

namespace mcastcoll::engine {

class SupplyGraph {
  public:
    // Before the first map the graph is point-to-point. range_of: by rank, if leaders relay to their ranges
    // (sender.h).
    explicit SupplyGraph(std::uint32_t members, std::vector<std::uint8_t> range_of = {})
        : members_(members), range_of_(std::move(range_of)) {}
    void set_map(ReachabilityMap map);
    const ReachabilityMap& map() const { return map_; }

    // True if another member can receive this root's multicasts, by the map alone, regardless of leaders.
    bool audible(Rank root) const {
        return healthy_ || (map_.works && !RankSet::of(map_.mute, members_).contains(root) &&
                            has_others(listening(), root));
    }
    // True if the rank can receive this root's multicasts, by the map alone.
    bool can_receive(Rank root, Rank rank) const { return rank != root && audible(root) && !deaf(rank); }
    // True if leaders relay to their ranges. False if a range has no able leader: roots then multicast to all
    // ranges.
    bool relayed() const { return !supplied_.empty(); }
    // True if the rank relays this root's fragments to its range.
    bool relays(Rank root, Rank rank) const { return relayed() && leads_towards(root, rank); }
    // True if a multicast of this root reaches any member.
    bool multicasts(Rank root) const { return healthy_ || reaches_any(root); }
    // True if the rank is to receive this root's multicasts.
    bool receives(Rank root, Rank rank) const {
        return rank != root && (healthy_ || (reaches_any(root) && receivers(root).contains(rank)));
    }
    // The member whose multicasts bring this root's data to the rank.
    Rank brought_by(Rank root, Rank rank) const {
        const bool by_leader = relayed() && range_of_[index_of(root)] != range_of_[index_of(rank)];
        return by_leader ? leaders_[range_of_[index_of(rank)]] : root;
    }
    bool deaf(Rank rank) const { return !listening().contains(rank); }
    std::uint32_t receiver_count() const { return listening().size(); }

    // The member that supplies `rank`; kNoRank for the root itself. arity: children per member in the tree of
    // deaf members.
    Rank supplier(Rank root, Rank rank, std::uint32_t arity) const;
    // The members that `rank` supplies: its ring successor, and its children in the tree.
    RankList clients(Rank root, Rank rank, std::uint32_t arity) const;

    // The parent of `rank` in the report tree, in which receiving members report progress to the root at its
    // top.
    Rank report_parent(Rank root, Rank rank, std::uint32_t arity) const;
    // The children of `rank` in the report tree.
    RankList report_children(Rank root, Rank rank, std::uint32_t arity) const;

  private:
    bool leads_towards(Rank root, Rank rank) const;
    bool reaches_any(Rank root) const { return audible(root) && has_others(receivers(root), root); }
    static bool has_others(const RankSet& set, Rank root) {
        return set.size() > (set.contains(root) ? 1U : 0U);
    }
    // True for a member of this root's ring, and for the root itself if it has a ring.
    bool on_ring(Rank root, Rank rank) const {
        return rank == root ? multicasts(root) : receives(root, rank);
    }
    RankSet listening() const {
        return map_.works ? RankSet::all_but(map_.deaf, members_) : RankSet::of({}, members_);
    }
    // Members that are supplied by messages from the start: deaf members, and leaders of other ranges.
    const std::vector<Rank>& supplied(Rank root) const {
        return relayed() ? supplied_[range_of_[index_of(root)]] : map_.deaf;
    }
    // Members that are to receive this root, and the root itself unless deaf.
    RankSet receivers(Rank root) const {
        return map_.works ? RankSet::all_but(supplied(root), members_) : RankSet::of({}, members_);
    }
    // Members in the tree below this root.
    RankSet fallback(Rank root) const {
        return multicasts(root) ? RankSet::of(supplied(root), members_) : RankSet::all_but({}, members_);
    }

    std::uint32_t members_;
    ReachabilityMap map_;
    // No member is deaf or mute, and roots multicast to all: the most frequent case needs no search.
    bool healthy_ = false;
    std::vector<std::uint8_t> range_of_;
    std::vector<Rank> leaders_;                // by range
    std::vector<std::vector<Rank>> supplied_;  // by the root's range
};

// The parent of `rank` in the gather tree, a heap over the ranks with rank 0 on top. Watermarks and leaving
// use this tree too.
Rank tree_parent(Rank rank, std::uint32_t arity);
// The children of `rank` in the gather tree.
RankList tree_children(Rank rank, std::uint32_t arity, std::uint32_t members);
// Number of ranks in the gather tree below `rank`, itself included.
std::uint32_t tree_size(Rank rank, std::uint32_t arity, std::uint32_t members);

}  // namespace mcastcoll::engine
