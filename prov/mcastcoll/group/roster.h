// The members of a group as one of them reaches them: from the welcome on.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "group/join_port.h"
#include "wire/join.h"

namespace mcastcoll::group {

class Roster {
  public:
    struct Member {
        Outbox::Peer peer = kNobody;
        wire::ByteString watch_point;
        // Somebody greets in its place: when it may be looked at again for that; 0: nobody did.
        Nanoseconds doubt_at{};
        bool answered = false;
    };

    // From a welcome, all but this member itself. 0 or an errno: who was reached before stays.
    int fill(std::span<const wire::Peer> peers, Rank self, JoinPort& port);

    std::size_t size() const { return members_.size(); }
    const Member& at(std::uint32_t rank) const { return members_[rank]; }
    std::vector<Outbox::Peer> peers_of(std::span<const std::uint32_t> ranks) const;
    // Everybody who is reached.
    std::vector<Outbox::Peer> all_peers() const;
    std::vector<Rank> ranks_at(Outbox::Peer peer) const;

    // Whether this member is to be looked at because somebody greets in its place: now and then.
    bool doubt(Rank rank, Nanoseconds now);
    // Where a successor greets a member was killed, and has not left in peace.
    bool doubted(Rank rank) const { return members_[index_of(rank)].doubt_at != Nanoseconds{}; }

    // Whether a member that asks how the group ended is to be told: words arrive, so once is enough.
    bool answer(Rank rank) {
        if (index_of(rank) >= size() || members_[index_of(rank)].peer == kNobody) return false;
        return !std::exchange(members_[index_of(rank)].answered, true);
    }

  private:
    static constexpr Outbox::Peer kNobody = UINT64_MAX;
    std::vector<Member> members_;
};

}  // namespace mcastcoll::group
