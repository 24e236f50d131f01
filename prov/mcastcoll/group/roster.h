// How the members of a group are reached.
#pragma once

#include <set>
#include <span>
#include <unordered_map>

#include "group/join_port.h"
#include "group/member_table.h"

namespace mcastcoll::group {

// Filled at the welcome. Most members of a large group are never contacted: the roster only has such a
// member's place in the table.
class Roster {
  public:
    struct Unreached {
        Rank rank = kNoRank;
        int error = 0;
        std::string reason;
    };

    void fill(const MemberTable& table, Rank self) {
        table_ = table;
        self_ = self;
    }

    const MemberTable& table() const { return *table_; }
    std::size_t size() const { return table_ ? table_->size() : 0; }
    wire::ByteString address(std::uint32_t rank) const { return table_->address(rank); }
    wire::ByteString watch_point(std::uint32_t rank) const { return table_->watch_point(rank); }

    // Returns the peer of a member and inserts its address at first use. Returns nothing for this member
    // itself, and for unreachable members, which take_unreached() reports.
    std::optional<Outbox::Peer> peer(std::uint32_t rank, JoinPort& port);
    // The peers of those `ranks` that are reachable.
    std::vector<Outbox::Peer> peers_of(std::span<const std::uint32_t> ranks, JoinPort& port);
    // The contacted ranks at this peer.
    std::vector<Rank> ranks_at(Outbox::Peer peer) const;
    // Whether take_unreached() has members to report.
    bool has_unreached() const { return !unreached_.empty(); }
    // Returns the members that cannot be reached, each once. They count as lost.
    std::vector<Unreached> take_unreached() { return std::exchange(unreached_, {}); }

    // Whether to check now if this member is alive, because another process sends hellos for the rank.
    // Limited to one check per interval.
    bool suspect(Rank rank, Nanoseconds now);
    // Whether another process has sent hellos for this rank: the member was then killed and did not close the
    // group in order.
    bool suspected(Rank rank) const { return look_again_at_.contains(rank); }

    // Whether to answer a member that requests the outcome of the group: once, because messages are reliable.
    bool answer(Rank rank) {
        return index_of(rank) < size() && rank != self_ && answered_.insert(rank).second;
    }

  private:
    static constexpr Outbox::Peer kUnreachable = UINT64_MAX;

    Rank self_ = kNoRank;
    std::optional<MemberTable> table_;                       // once filled
    std::unordered_map<std::uint32_t, Outbox::Peer> peers_;  // kUnreachable: cannot be reached
    std::multimap<Outbox::Peer, Rank> ranks_;                // several may share one peer
    std::vector<Unreached> unreached_;
    std::map<Rank, Nanoseconds> look_again_at_;  // next check of ranks with suspicious hellos
    std::set<Rank> answered_;
};

}  // namespace mcastcoll::group
