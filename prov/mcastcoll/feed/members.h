// Who is known in a group, and what a member knows of each other one: how far it has got, what it has sent,
// and when a hole in that is to be reported. Bounded: who has been silent for longest makes room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "feed/window.h"

namespace mcastcoll::feed {

// When a hole in what a sender has sent is reported: not at once, because reordering is not loss, then again
// and again, less often while nothing changes.
class GapTimer {
  public:
    Nanoseconds deadline() const { return at_; }
    void stop() { at_ = kNever; }
    // Something has come: whether there is a hole now.
    void watch(bool has_gap, Nanoseconds now);
    // The hole, from this packet on, has been reported.
    void reported(std::uint64_t first_missing, Nanoseconds now);

  private:
    Nanoseconds at_ = kNever, pause_{0};
    std::uint64_t reported_from_ = 0;
};

struct Member {
    MemberId id{};
    Nanoseconds heard;
    // It receives what this member sends.
    bool receives = false;
    std::size_t room = 0;
    std::uint64_t start = 0, acked = 0;
    Nanoseconds moved;
    // It sends. Null: not, or it is not known from where on.
    std::unique_ptr<Incoming> incoming;
    std::uint64_t reported = 0, report_every = 1;
    bool report_wanted = false;
    GapTimer gap;
    // Messages of it are missing for good, which the host knows: no more of them are taken.
    bool barred = false;
    bool leaving = false;  // all that it has sent has come
    bool gone = false;     // goes with the next bury()
};

class Members {
  public:
    static constexpr std::size_t kMostMembers = 256;

    Member* find(MemberId id);
    bool full() const { return all_.size() >= kMostMembers; }
    // Call only when not full, of who is not there.
    Member& add(MemberId id, Nanoseconds now);
    // Makes room: who has been silent for the longest time, and has had time enough, goes. Null: nobody has.
    std::unique_ptr<Member> evict(Nanoseconds now, Nanoseconds peer_timeout);
    void bury();
    // Time in which nobody drove this member counts against nobody.
    void forgive(Nanoseconds pause, Nanoseconds now);

    std::size_t receivers() const;
    // Up to where all receivers have everything, of what is sent up to next.
    std::uint64_t acked_by_all(std::uint64_t next) const;
    // What the smallest receive buffer holds, if less.
    std::size_t least_room(std::size_t packets) const;

    // A host may be called meanwhile, and that adds nobody.
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

  private:
    std::vector<std::unique_ptr<Member>> all_;
};

}  // namespace mcastcoll::feed
