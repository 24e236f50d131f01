// The greetings of a join on their way to rank 0: up a tree by rank, so that nobody hears from many.
//
//     0  <-  1, 2 ... 31                 a member greets the rank that its own becomes when its last digit
//     0  <-  32, 64 ... 992              to the base 32 that is not 0 is set to 0
//     32 <-  33, 34 ... 63               who gathers others' greetings greets as one who does not have them
//     0  <-  1024, 2048 ...              yet, until it has; then it is asked for them
//
// Up to 32 members greet rank 0 themselves; of n members it hears 31 log32 n.
#pragma once

#include <map>
#include <vector>

#include "wire/join.h"

namespace mcastcoll::group {

// Whom this rank greets. Of another than 0.
Rank greeting_parent(Rank rank);
// How many ranks, from this one on, greet through it; itself included.
std::uint32_t greeting_span(Rank rank, std::uint32_t members);

// The greetings that one member gathers.
class Gathering {
  public:
    Gathering(Rank self, std::uint32_t members);

    // Whether this rank greets here.
    bool expects(Rank rank) const;
    // The first one of a rank counts. Its own, too.
    void add(const wire::Hello& hello);
    // What one that greets here has gathered, or a part of it: nothing of it, where something is not its to
    // tell.
    void add_from(Rank from, const std::vector<wire::Hello>& hellos);
    bool complete() const { return count_ == span_; }
    std::uint32_t span() const { return span_; }

    // Null: it has not greeted.
    const wire::Hello* of(Rank rank) const;
    // Those that greet here, and have not; and the greetings of those that have.
    std::vector<Rank> missing() const;
    std::vector<const wire::Hello*> heard() const;
    // Of all, by rank from this one's on, once complete.
    std::vector<wire::Hello> guests() const;
    // They have been passed on: of those that do not greet here nothing is kept.
    void passed_on();

  private:
    const Rank self_;
    const std::uint32_t members_, span_;
    std::map<Rank, wire::Hello> greetings_;
    std::uint32_t count_ = 0;
};

}  // namespace mcastcoll::group
