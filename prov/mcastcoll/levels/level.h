// The interface of each level of the hierarchy, whatever its transport: shared memory inside a host, the
// engine's multicast among the hosts of a segment, messages between segments and sites.
//
// A level operation (`LevelOperation`) is the part of one operation on one level. The hierarchy (hierarchy.h)
// posts level operations and moves data from one level to the next; each level runs independently. The
// members of a level are numbered from 0 in the order of their ranks in the group, and member 0 is the
// leader.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/collective.h"

namespace mcastcoll::levels {

using Kind = CollectiveKind;

// The part of an operation on one level. The root is numbered as a member of this level.
struct LevelOperation : Collective {
    std::uint64_t number = 0;  // of the operation in its group

    // Set by the hierarchy, which then calls Level::advance(), as after it has changed `ready`.
    bool released = false;

    // Set by the level.
    std::size_t arrived = 0;  // on receivers of a broadcast: contiguous bytes received from the start
    bool gathered = false;
    bool done = false;
    int error = 0;  // positive FI_E*, valid with done

    std::uint64_t handle = 0;  // for the level's own use
};

class Level {
  public:
    virtual ~Level() = default;
    // Starts a level operation, which must stay valid until `done`. All members post in the same order.
    // Returns 0, or EAGAIN if there is no room now.
    virtual int post(LevelOperation& operation, Nanoseconds now) = 0;
    // Called when `ready` or `released` of the operation has changed.
    virtual void advance(LevelOperation& operation, Nanoseconds now) = 0;
    // Makes progress; returns true if there was any.
    virtual bool progress(Nanoseconds now) = 0;
    virtual Nanoseconds next_deadline() const = 0;
    // Ends every present and future level operation with this error, on all members of the level.
    virtual void fail(int error, Nanoseconds now) = 0;
    // Positive FI_E* code if the level has failed by itself, else 0. There may be no open level operation
    // that reports the failure.
    virtual int own_failure() const { return 0; }
};

}  // namespace mcastcoll::levels
