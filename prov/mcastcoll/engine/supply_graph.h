// Who gets a broadcast from whom when the multicast does not bring it.
//
// Members that hear the multicast stand in a virtual ring that starts at the root (Hoefler, Siebert, Rehm
// 2007, section 3): each is supplied by its predecessor, and the edge back to the root is left out. Members
// that were voted deaf hang in a tree below the root. When nobody hears the root, everybody does. Every
// member computes the same graph from the verdict.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wire/types.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kMaxArity = 8;

// At most kMaxArity + 1 ranks, in order.
struct RankList {
    std::array<Rank, kMaxArity + 1> ranks{};
    std::uint32_t count = 0;
    void add(Rank rank) { ranks[count++] = rank; }
    const Rank* begin() const { return ranks.data(); }
    const Rank* end() const { return ranks.data() + count; }
};

class SupplyGraph {
  public:
    // Until a verdict is known everybody counts as deaf: all is point-to-point.
    explicit SupplyGraph(std::uint32_t members);
    // deaf[r], mute[r]: rank r cannot hear, cannot be heard. Both hold one entry per member.
    void set_verdict(const std::vector<bool>& deaf, const std::vector<bool>& mute);

    // True when a multicast of this root reaches anybody.
    bool multicasts(Rank root) const;
    // True when the rank is to hear this root's multicasts.
    bool hears(Rank root, Rank rank) const;
    bool deaf(Rank rank) const { return is_deaf_[index_of(rank)]; }
    std::uint32_t hearing_count() const { return static_cast<std::uint32_t>(hearing_.size()); }

    // The member that supplies `rank`; kNoRank for the root itself. arity: children per member of the deaf
    // members' tree.
    Rank supplier(Rank root, Rank rank, std::uint32_t arity) const;
    // Whom `rank` supplies: its ring successor, and its children in the tree.
    RankList clients(Rank root, Rank rank, std::uint32_t arity) const;

    // The tree in which hearing members report progress to the root, which is its top.
    Rank report_parent(Rank root, Rank rank, std::uint32_t arity) const;
    RankList report_children(Rank root, Rank rank, std::uint32_t arity) const;

  private:
    // Members of a sorted list in ring order behind the root, the root left out: position 1 is the first
    // behind it.
    std::uint32_t position(const std::vector<Rank>& list, Rank root, Rank rank) const;
    Rank at_position(const std::vector<Rank>& list, Rank root, std::uint32_t position) const;
    static std::uint32_t length_behind(const std::vector<Rank>& list, Rank root);
    RankList tree_children(const std::vector<Rank>& list, Rank root, std::uint32_t position,
                           std::uint32_t arity) const;
    const std::vector<Rank>& fallback(Rank root) const { return multicasts(root) ? deaf_ : everybody_; }

    std::vector<Rank> everybody_, hearing_, deaf_;
    std::vector<bool> is_deaf_, is_mute_;
};

// The binary heap's parent and children for any arity, over ranks with rank 0 on top: the tree of gathers and
// floors.
Rank tree_parent(Rank rank, std::uint32_t arity);
RankList tree_children(Rank rank, std::uint32_t arity, std::uint32_t members);

}  // namespace mcastcoll::engine
