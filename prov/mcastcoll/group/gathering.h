// Gathers the hellos of a join (datagrams with which members ask to join) on their way to rank 0, in a tree
// by rank that bounds the number of senders per receiver.
//
//     0  <-  1, 2 ... 31                 A member's parent is its own rank with the lowest non-zero digit
//     0  <-  32, 64 ... 992              (base 32) set to 0.
//     32 <-  33, 34 ... 63               A parent other than rank 0 also sends hellos. Once its subtree is
//     0  <-  1024, 2048 ...              complete its hello is marked `gathered`, and its parent collects.
//
// In groups of up to 32 every member sends its hello to rank 0. Of n members, rank 0 receives hellos from 31
// log32 n.
#pragma once

#include <map>
#include <vector>

#include "wire/join.h"

namespace mcastcoll::group {

// The rank to which this rank (not 0) sends its hello.
Rank hello_parent(Rank rank);
// Number of consecutive ranks, starting with this rank, whose hellos reach rank 0 through this rank.
std::uint32_t hello_span(Rank rank, std::uint32_t members);

// The hellos that one member gathers.
class Gathering {
  public:
    Gathering(Rank self, std::uint32_t members);

    // Whether `rank` sends its hellos to this member.
    bool expects(Rank rank) const;
    // Adds a hello, this member's own included. The first hello of a rank counts.
    void add(const wire::Hello& hello);
    // Adds hellos that the child `from` has gathered: all, or a part of them. A hello from outside the
    // child's subtree invalidates the whole message.
    void add_from(Rank from, const std::vector<wire::Hello>& hellos);
    bool complete() const { return count_ == span_; }
    std::uint32_t span() const { return span_; }

    // Returns null if no hello of this rank has arrived.
    const wire::Hello* of(Rank rank) const;
    // The children without an arrived hello.
    std::vector<Rank> missing() const;
    // The hellos of the other children.
    std::vector<const wire::Hello*> received() const;
    // All hellos of the subtree in the order of ranks, once complete.
    std::vector<wire::Hello> hellos() const;
    // Drops forwarded hellos, except this member's own and the children's.
    void mark_forwarded();

  private:
    const Rank self_;
    const std::uint32_t members_, span_;
    std::map<Rank, wire::Hello> hellos_;
    std::uint32_t count_ = 0;
};

}  // namespace mcastcoll::group
