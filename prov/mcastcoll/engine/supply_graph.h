// Who gets a broadcast from whom when the multicast does not bring it.
// README.md has the ring (Hoefler, Siebert, Rehm 2007, section 2.2) and the tree of the deaf. Every member
// computes the same graph from the verdict, and keeps no more of it than who is deaf and who is mute.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "base/rank_set.h"
#include "base/types.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kMaxArity = 8;

// At most kMaxArity + 1 ranks, in order.
struct RankList {
    std::array<Rank, kMaxArity + 1> ranks{};
    std::uint32_t count = 0;
    void add(Rank rank) { ranks[count++] = rank; }
    const Rank* begin() const { return ranks.data(); }
    const Rank* end() const { return ranks.data() + count; }
    // The place of a rank; `count` when it is none of them.
    std::uint32_t place(Rank rank) const {
        return static_cast<std::uint32_t>(std::find(begin(), end(), rank) - begin());
    }
    bool contains(Rank rank) const { return place(rank) < count; }
    // As bits, the i-th for the i-th of them.
    std::uint32_t bits() const { return (1U << count) - 1; }
};

// Who of a member's children is to be told something next, one after the other.
class Round {
  public:
    explicit Round(const RankList& children) : children_(children), told_(children.count) {}
    void begin() { told_ = 0; }
    // Everybody has been told.
    bool over() const { return told_ == children_.count; }
    Rank next() { return over() ? kNoRank : children_.ranks[told_++]; }

  private:
    const RankList children_;
    std::uint32_t told_;
};

// What the members agreed about the multicast. When it does not work nobody hears anybody, and the lists are
// empty.
struct Verdict {
    bool works = false;
    std::vector<Rank> deaf, mute;  // ascending: who cannot hear, who cannot be heard
    bool operator==(const Verdict&) const = default;
};

class SupplyGraph {
  public:
    // Until a verdict is known it does not work: all is point-to-point.
    // range_of: by rank, when a root multicasts to its own range and leaders onward to the others (sender.h).
    explicit SupplyGraph(std::uint32_t members, std::vector<std::uint8_t> range_of = {})
        : members_(members), range_of_(std::move(range_of)) {}
    void set_verdict(Verdict verdict);
    const Verdict& verdict() const { return verdict_; }

    // What the verdict says, whoever sends what to whom.
    bool audible(Rank root) const {
        return healthy_ || (verdict_.works && !RankSet::of(verdict_.mute, members_).contains(root) &&
                            has_others(listening(), root));
    }
    bool can_hear(Rank root, Rank rank) const { return rank != root && audible(root) && !deaf(rank); }
    // Leaders relay; false also when a range has no able one, so that roots multicast to all ranges.
    bool relayed() const { return !supplied_.empty(); }
    // True when the rank is to multicast this root's fragments onward.
    bool relays(Rank root, Rank rank) const { return relayed() && leads_towards(root, rank); }
    // True when a multicast of this root reaches anybody.
    bool multicasts(Rank root) const { return healthy_ || reaches_anybody(root); }
    // True when the rank is to hear this root's multicasts.
    bool hears(Rank root, Rank rank) const {
        return rank != root && (healthy_ || (reaches_anybody(root) && hearing(root).contains(rank)));
    }
    // Whose multicasts bring it.
    Rank brought_by(Rank root, Rank rank) const {
        const bool by_leader = relayed() && range_of_[index_of(root)] != range_of_[index_of(rank)];
        return by_leader ? leaders_[range_of_[index_of(rank)]] : root;
    }
    bool deaf(Rank rank) const { return !listening().contains(rank); }
    std::uint32_t hearing_count() const { return listening().size(); }

    // The member that supplies `rank`; kNoRank for the root itself. arity: children per member of the deaf
    // members' tree.
    Rank supplier(Rank root, Rank rank, std::uint32_t arity) const;
    // Whom `rank` supplies: its ring successor, and its children in the tree.
    RankList clients(Rank root, Rank rank, std::uint32_t arity) const;

    // The tree in which hearing members report progress to the root, which is its top.
    Rank report_parent(Rank root, Rank rank, std::uint32_t arity) const;
    RankList report_children(Rank root, Rank rank, std::uint32_t arity) const;

  private:
    bool leads_towards(Rank root, Rank rank) const;
    bool reaches_anybody(Rank root) const { return audible(root) && has_others(hearing(root), root); }
    static bool has_others(const RankSet& set, Rank root) {
        return set.size() > (set.contains(root) ? 1U : 0U);
    }
    // It stands in this root's ring, or is the root and has one.
    bool on_ring(Rank root, Rank rank) const { return rank == root ? multicasts(root) : hears(root, rank); }
    RankSet listening() const {
        return verdict_.works ? RankSet::everybody_but(verdict_.deaf, members_) : RankSet::of({}, members_);
    }
    // Who is supplied with messages from the start: the deaf, and other ranges' leaders.
    const std::vector<Rank>& supplied(Rank root) const {
        return relayed() ? supplied_[range_of_[index_of(root)]] : verdict_.deaf;
    }
    // Who is to hear this root, and the root itself when it is not deaf.
    RankSet hearing(Rank root) const {
        return verdict_.works ? RankSet::everybody_but(supplied(root), members_) : RankSet::of({}, members_);
    }
    // Who hangs in the tree below this root.
    RankSet fallback(Rank root) const {
        return multicasts(root) ? RankSet::of(supplied(root), members_)
                                : RankSet::everybody_but({}, members_);
    }

    std::uint32_t members_;
    Verdict verdict_;
    // Nobody is deaf or mute, and roots multicast to everybody: what is asked most is known.
    bool healthy_ = false;
    std::vector<std::uint8_t> range_of_;
    std::vector<Rank> leaders_;                // by range
    std::vector<std::vector<Rank>> supplied_;  // by the root's range
};

// The heap over ranks with rank 0 on top: the tree of gathers and watermarks.
Rank tree_parent(Rank rank, std::uint32_t arity);
RankList tree_children(Rank rank, std::uint32_t arity, std::uint32_t members);
// Ranks in the tree below `rank`, itself included.
std::uint32_t tree_size(Rank rank, std::uint32_t arity, std::uint32_t members);

}  // namespace mcastcoll::engine
