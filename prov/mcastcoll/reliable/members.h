// The known members of a group and the state of each: address, whether it has answered, progress, received
// data, and the time of the next report about a hole. The number is bounded: a new member replaces a member
// without an answer, or the member with the longest silence.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reliable/member.h"

namespace mcastcoll::reliable {

class Members {
  public:
    static constexpr std::size_t kMaxMembers = 256;

    Member* find(MemberId id);
    bool full() const { return all_.size() >= kMaxMembers; }
    // Requires that the group is not full and that the id is unknown.
    Member& add(MemberId id, const Place& place, Nanoseconds now);
    // Removes a member to make room: a member without an answer, or else the member with the longest silence
    // above the peer timeout. Null if no member qualifies.
    std::unique_ptr<Member> evict(Nanoseconds now, Nanoseconds peer_timeout);
    void remove_gone();
    // Extends the deadlines by a pause in which the caller did not run this member.
    void forgive(Nanoseconds pause, Nanoseconds now);

    bool all_answered() const;
    std::size_t receivers() const;
    // The lowest packet number that some receiver has not acknowledged; at most `next`.
    std::uint64_t acked_by_all(std::uint64_t next) const;
    // The smallest receive buffer of all receivers, at most `packets`.
    std::size_t min_room(std::size_t packets) const;

    // Host functions called during iteration must not add members.
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

  private:
    std::vector<std::unique_ptr<Member>> all_;
};

}  // namespace mcastcoll::reliable
