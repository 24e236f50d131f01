// Who is known in a group, and what a member knows of each other one: where it is, whether it has answered,
// how far it has got, what it has sent, and when a hole in that is to be reported. Bounded: who has been
// silent for longest makes room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "feed/window.h"
#include "wire/taken_numbers.h"

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

// When who has not answered is asked again whether it is there: not for ever, since anybody may say that
// somebody is.
class AskTimer {
  public:
    explicit AskTimer(Nanoseconds now);
    Nanoseconds deadline() const { return at_; }
    void stop() { at_ = kNever; }
    void asked(Nanoseconds now);
    // It has spoken, but it was no answer.
    void resume(Nanoseconds now);

  private:
    Nanoseconds at_, pause_;
    unsigned left_;
};

struct Member {
    Member(MemberId its_id, const Place& its_place, Nanoseconds now)
        : id(its_id), place(its_place), heard(now), ask(now) {}

    const MemberId id;
    Place place;  // does not change once it has answered
    Nanoseconds heard;
    // It has answered what this member has said since it knows it: so it is there now, and what it says is no
    // repetition, by a stranger, of what it said before.
    bool answered = false;
    std::uint64_t asked_from = 0;  // the serial of the first packet of this member that it can answer
    std::uint64_t introduced = 0;  // the serial of its last join or welcome
    AskTimer ask;
    wire::TakenNumbers serials;
    // It receives what this member sends.
    bool receives = false;
    // It did, and was too late.
    bool expelled = false;
    std::size_t room = 0;
    std::uint64_t start = 0, acked = 0;
    Nanoseconds moved{};
    // It sends. Null: not, or it is not known from where on.
    std::unique_ptr<Incoming> incoming;
    std::uint64_t reported = 0, report_every = 1;
    bool report_wanted = false;
    GapTimer gap;
    // Messages of it are missing for good, which the host knows: no more of them are taken.
    bool barred = false;
    bool leaving = false;  // all that it has sent has come, or is not wanted; it does not come back
    bool gone = false;     // goes with the next bury()
};

class Members {
  public:
    static constexpr std::size_t kMostMembers = 256;

    Member* find(MemberId id);
    bool full() const { return all_.size() >= kMostMembers; }
    // Call only when not full, of who is not there.
    Member& add(MemberId id, const Place& place, Nanoseconds now);
    // Makes room: who has not answered goes, or else who has been silent for the longest time and has had
    // time enough. Null: nobody has.
    std::unique_ptr<Member> evict(Nanoseconds now, Nanoseconds peer_timeout);
    void bury();
    // Time in which nobody drove this member counts against nobody.
    void forgive(Nanoseconds pause, Nanoseconds now);

    bool all_answered() const;
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
