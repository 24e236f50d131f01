// The known members of a group and the state of each: address, whether it has answered, progress, received
// data, and the time of the next report about a hole. The number is bounded: a new member replaces a member
// without an answer, or the member with the longest silence.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reliable/window.h"
#include "wire/taken_numbers.h"

namespace mcastcoll::reliable {

// Time of a report about a hole in a sender's packets: delayed, because reordering is no loss, then repeated
// with growing pauses while nothing changes.
class GapTimer {
  public:
    Nanoseconds deadline() const { return at_; }
    void stop() { at_ = kNever; }
    // Called after a packet: has_gap says whether a hole exists now.
    void watch(bool has_gap, Nanoseconds now);
    // The hole that begins with this packet has been reported.
    void reported(std::uint64_t first_missing, Nanoseconds now);

  private:
    Nanoseconds at_ = kNever, pause_{0};
    std::uint64_t reported_from_ = 0;
};

// Time of the next request to a member that has not answered. The number of requests is limited, because an
// id may be forged.
class RequestTimer {
  public:
    explicit RequestTimer(Nanoseconds now);
    Nanoseconds deadline() const { return at_; }
    void stop() { at_ = kNever; }
    void requested(Nanoseconds now);
    // The member has sent a packet, but no answer.
    void resume(Nanoseconds now);

  private:
    Nanoseconds at_, pause_;
    unsigned left_;
};

struct Member {
    Member(MemberId its_id, const Place& its_place, Nanoseconds now)
        : id(its_id), place(its_place), last_received(now), request_timer(now) {}

    const MemberId id;
    Place place;  // fixed once the member has answered
    Nanoseconds last_received;
    // The member has answered a recent packet of this member. So the member exists now, and its packets are
    // no replay by a foreign host.
    bool answered = false;
    std::uint64_t answers_from = 0;  // lowest serial of this member's packets to which it can answer
    std::uint64_t introduced = 0;    // serial of the member's last join or welcome
    RequestTimer request_timer;
    wire::TakenNumbers serials;
    // A receiver of this member's data.
    bool receives = false;
    // A former receiver that was too slow.
    bool expelled = false;
    std::size_t room = 0;
    std::uint64_t start = 0, acked = 0;
    Nanoseconds moved{};
    // Data from this sender. Null: no sender, or the first packet is not known yet.
    std::unique_ptr<Incoming> incoming;
    std::uint64_t reported = 0, report_every = 1;
    bool report_wanted = false;
    GapTimer gap;
    // Messages of this sender are lost, which the host knows: no more of its messages are accepted.
    bool barred = false;
    bool leaving = false;  // all of its data has arrived or is not needed; the member does not come back
    bool gone = false;     // removed by the next remove_gone()
};

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
    // First packet that some receiver has not acknowledged; at most `next`.
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
