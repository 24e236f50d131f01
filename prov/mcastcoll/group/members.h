// The members of a group from the view of one member: how they are reached, which are lost and which members
// are informed of a loss, and which have been awaited for long.
#pragma once

#include <set>
#include <span>
#include <unordered_map>

#include "group/port.h"

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
    // The peers of the reachable ranks.
    std::vector<Outbox::Peer> peers_of(std::span<const std::uint32_t> ranks, JoinPort& port);
    // The contacted ranks at this peer.
    std::vector<Rank> ranks_at(Outbox::Peer peer) const;
    // Unreachable members, which count as lost; each once.
    bool has_unreached() const { return !unreached_.empty(); }
    std::vector<Unreached> take_unreached() { return std::exchange(unreached_, {}); }

    // Whether to check now if this member is alive, because another process sends hellos for the rank.
    // Limited to one check per interval.
    bool suspect(Rank rank, Nanoseconds now);
    // Whether another process has sent hellos for this rank: the member was then killed and did not close the
    // group in order.
    bool suspected(Rank rank) const { return look_again_at_.contains(rank); }

    // Whether to answer a member that requests the outcome of the group. Messages are reliable, so one answer
    // is enough.
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

class Losses {
  public:
    struct Loss {
        Rank rank = kNoRank;
        int error = 0;
    };

    // The process of this member is gone or unreachable. The first reason counts.
    void add(Rank rank, int error, const std::string& reason) {
        found_.push_back({rank, error});
        reasons_.emplace(rank, reason);
    }
    // The losses since the last call.
    std::vector<Loss> take_found() { return std::exchange(found_, {}); }
    const std::string* reason(Rank rank) const {
        const auto found = reasons_.find(rank);
        return found == reasons_.end() ? nullptr : &found->second;
    }

    // Records a lost member that no open operation needed, such as a member with a finished part. The loss
    // becomes an error as soon as an operation needs the member.
    void let_go(const Loss& loss) { gone_.push_back(loss); }
    // Returns a recorded loss for which needs(rank) holds, or a loss with kNoRank.
    template <typename Needed>
    Loss needed(Needed&& needs) const {
        for (const Loss& loss : gone_)
            if (needs(static_cast<std::uint32_t>(index_of(loss.rank)))) return loss;
        return {};
    }

  private:
    std::vector<Loss> found_, gone_;
    std::map<Rank, std::string> reasons_;
};

// The ranks that a member informs when its group ends because of the lost rank (kNoRank: unknown). The
// processes of a host learn of the end from shared memory, host leaders from the engine, and segment leaders
// inform their neighbours. A dead leader forwards no news: its neighbours inform each other, and the
// remaining informed members send the news to a few of these neighbours. While the group forms a member's
// levels may be missing: each member then informs rank 0, and its neighbours in a ring and a tree over all
// members.
std::vector<std::uint32_t> whom_to_inform(const levels::Placement& placement, Rank lost, bool joined);

// The maximum number of lost ranks, kNoRank included, for which one member informs others: the news may
// arrive first without the lost rank, or for two ranks.
constexpr std::size_t kMaxDeathsSent = 3;

// Tracks late members, for which an operation has waited for long. While an operation is open each late
// member gets a request every second to report whether its part of the group has failed, because no other
// member may be left to report the failure. Also implements the user's stall timeout, which ends a group with
// stalled operations.
class StallTimer {
  public:
    // kNever: operations may stall forever.
    explicit StallTimer(Nanoseconds stall_timeout) : stall_timeout_(stall_timeout) {}

    // An operation was opened while no other was open.
    void begin(Nanoseconds now) {
        moved_at_ = now;
        if (!late_.empty()) request_at_ = now + kRequestInterval;
    }
    // Operations made progress.
    void moved(Nanoseconds now) { moved_at_ = now; }
    // The time at which a stall becomes an error. The engine has its own stall timeout and knows better which
    // member is late, so the timeout for other members is longer by half.
    Nanoseconds stalled_at(bool with_engine) const {
        if (stall_timeout_ == kNever) return kNever;
        return moved_at_ + stall_timeout_ + Nanoseconds{with_engine ? stall_timeout_.value / 2 : 0};
    }

    // A member has just become late. The next request is due at once.
    void add_late(std::uint32_t rank, Nanoseconds now) {
        late_.push_back(rank);
        request_at_ = now;
    }
    const std::vector<std::uint32_t>& late() const { return late_; }
    Nanoseconds request_at() const { return request_at_; }
    // Counts a round of requests and schedules the next, if again. Returns the number of the round.
    std::uint32_t next_round(bool again, Nanoseconds now) {
        request_at_ = again ? now + kRequestInterval : kNever;
        return rounds_++;
    }

  private:
    static constexpr Nanoseconds kRequestInterval = Nanoseconds::from_ms(1000);

    const Nanoseconds stall_timeout_;
    Nanoseconds moved_at_{};  // when an operation last started or made progress
    std::vector<std::uint32_t> late_;
    Nanoseconds request_at_ = kNever;
    std::uint32_t rounds_ = 0;
};

}  // namespace mcastcoll::group
