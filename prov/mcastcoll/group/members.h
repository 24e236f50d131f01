// The members of a group as one of them has them: how they are reached, who is gone and who is told of it,
// who is waited for long.
#pragma once

#include <set>
#include <span>
#include <unordered_map>

#include "group/port.h"

namespace mcastcoll::group {

// From the welcome on. Most members of a large group are never spoken to: of those it keeps where they are,
// and nothing else is made for them.
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

    // How a member is spoken to: its address is inserted at the first time. Nothing for this member itself,
    // and for whoever cannot be reached, which take_unreached() says.
    std::optional<Outbox::Peer> peer(std::uint32_t rank, JoinPort& port);
    // Of those that can be reached.
    std::vector<Outbox::Peer> peers_of(std::span<const std::uint32_t> ranks, JoinPort& port);
    // Of those that were spoken to.
    std::vector<Rank> ranks_at(Outbox::Peer peer) const;
    // Members that are lost to this one because they could not be reached, each once.
    bool has_unreached() const { return !unreached_.empty(); }
    std::vector<Unreached> take_unreached() { return std::exchange(unreached_, {}); }

    // Whether this member is to be looked at because somebody greets in its place: now and then.
    bool doubt(Rank rank, Nanoseconds now);
    // Where a successor greets a member was killed, and has not left in peace.
    bool doubted(Rank rank) const { return look_again_at_.contains(rank); }

    // Whether a member that asks how the group ended is to be told: words arrive, so once is enough.
    bool answer(Rank rank) {
        return index_of(rank) < size() && rank != self_ && answered_.insert(rank).second;
    }

  private:
    static constexpr Outbox::Peer kNobody = UINT64_MAX;

    Rank self_ = kNoRank;
    std::optional<MemberTable> table_;                       // once it is filled
    std::unordered_map<std::uint32_t, Outbox::Peer> peers_;  // kNobody: cannot be reached
    std::multimap<Outbox::Peer, Rank> ranks_;                // several may be at one place
    std::vector<Unreached> unreached_;
    std::map<Rank, Nanoseconds> look_again_at_;  // at those in whose place somebody greets
    std::set<Rank> answered_;
};

class Losses {
  public:
    struct Loss {
        Rank rank = kNoRank;
        int error = 0;
    };

    // The process of this member is gone, or cannot be reached any more. The first reason counts.
    void add(Rank rank, int error, const std::string& reason) {
        found_.push_back({rank, error});
        reasons_.emplace(rank, reason);
    }
    // Those that came since the last call.
    std::vector<Loss> take_found() { return std::exchange(found_, {}); }
    const std::string* reason(Rank rank) const {
        const auto found = reasons_.find(rank);
        return found == reasons_.end() ? nullptr : &found->second;
    }

    // Gone without having been needed for anything open, as whoever has done its share may be: an error as
    // soon as it is needed.
    void let_go(const Loss& loss) { gone_.push_back(loss); }
    // One of those that this holds for; kNoRank: none.
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

// The ranks that a member tells when its group has ended because of this one (kNoRank: of nobody). Members of
// a host hear it from the memory that they share, leaders of hosts from their engine, and leaders of segments
// tell those beside them. A dead leader can tell nobody: those whom it would have told, and who would have
// told it, tell each other, and any other that knows of it tells a few of them. While the group forms a
// member's levels may be missing: all tell rank 0, and those beside them in a ring and a tree of all members.
std::vector<std::uint32_t> whom_to_tell(const levels::Placement& placement, Rank lost, bool joined);

// A member tells others because of so many deaths at most, kNoRank counted: who has heard that the group has
// ended may be told later because of whom, or that there is another.
constexpr std::size_t kMostDeathsTold = 3;

// Who is waited for long is asked every second, while anything is
// open, whether its part of the group has failed: nobody else may be left to say so. Operations that come no
// further end the group, if the user wishes so.
class Patience {
  public:
    // kNever: operations may stand still for ever.
    explicit Patience(Nanoseconds stall_timeout) : stall_timeout_(stall_timeout) {}

    // An operation is open, where none was.
    void begin(Nanoseconds now) {
        moved_at_ = now;
        if (!late_.empty()) ask_at_ = now + kAskInterval;
    }
    // Operations came further.
    void moved(Nanoseconds now) { moved_at_ = now; }
    // When they have stood still for too long. Where there is an engine, which sees to its own members, it
    // knows better who is late: patience with the others is longer.
    Nanoseconds stalled_at(bool with_engine) const {
        if (stall_timeout_ == kNever) return kNever;
        return moved_at_ + stall_timeout_ + Nanoseconds{with_engine ? stall_timeout_.value / 2 : 0};
    }

    // This member has been waited for long just now: it is to be asked at once.
    void add_late(std::uint32_t rank, Nanoseconds now) {
        late_.push_back(rank);
        ask_at_ = now;
    }
    const std::vector<std::uint32_t>& late() const { return late_; }
    Nanoseconds ask_at() const { return ask_at_; }
    // They are asked now, and again if they may be waited for longer. The number of the question.
    std::uint32_t ask(bool again, Nanoseconds now) {
        ask_at_ = again ? now + kAskInterval : kNever;
        return asked_++;
    }

  private:
    static constexpr Nanoseconds kAskInterval = Nanoseconds::from_ms(1000);

    const Nanoseconds stall_timeout_;
    Nanoseconds moved_at_{};  // when an operation last began or came further
    std::vector<std::uint32_t> late_;
    Nanoseconds ask_at_ = kNever;
    std::uint32_t asked_ = 0;
};

}  // namespace mcastcoll::group
