// What every level of the hierarchy can do, whatever carries it: shared memory inside a host, the engine's
// multicast among the hosts of a segment, messages between segments and sites.
//
// A *leg* is one operation's share of one level. Whoever walks the levels (hierarchy.h) posts legs and moves
// data from one to the next; a level carries its legs out and knows nothing of the others. The members of a
// level are counted from 0 in the order of their ranks in the group; member 0 is its leader.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/collective.h"

namespace mcastcoll::levels {

using Kind = CollectiveKind;

// Its root is a member of this level.
struct Leg : Collective {
    std::uint64_t number = 0;  // of the operation in its group

    // Said by who walks the levels, followed by Level::advance(), as what is ready.
    bool released = false;

    // Said by the level.
    std::size_t arrived = 0;  // elsewhere than at a broadcast's root: so many bytes, from the first, are here
    bool gathered = false;
    bool done = false;
    int error = 0;  // positive FI_E*, with done

    std::uint64_t handle = 0;  // the level's own
};

class Level {
  public:
    virtual ~Level() = default;
    // The leg stays where it is until it is done. Legs are posted in the same order on all members. 0, or
    // EAGAIN: there is no room now.
    virtual int post(Leg& leg, Nanoseconds now) = 0;
    // The leg's ready or released has changed.
    virtual void advance(Leg& leg, Nanoseconds now) = 0;
    // Moves what can be moved; true if anything did.
    virtual bool progress(Nanoseconds now) = 0;
    virtual Nanoseconds next_deadline() const = 0;
    // Ends every leg, present and future, with this error, on all members of the level.
    virtual void fail(int error, Nanoseconds now) = 0;
    // Positive FI_E* of a level that has failed by itself: no leg may be open to tell.
    virtual int own_failure() const { return 0; }
};

}  // namespace mcastcoll::levels
