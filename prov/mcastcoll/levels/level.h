// What every level of the hierarchy can do, whatever carries it: shared memory inside a host, the engine's
// multicast among the hosts of a segment, messages between segments and sites.
//
// A *leg* is one operation's share of one level. Whoever walks the levels (hierarchy.h) posts legs and moves
// data from one to the next; a level carries its legs out and knows nothing of the others. The members of a
// level are counted from 0 in the order of their ranks in the group; member 0 is its leader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/types.h"
#include "reduce/combiner.h"

namespace mcastcoll::levels {

// What each makes of `input` and `buffer`, with n members and blocks of `bytes`:
//   gather          bytes -> n blocks, at the root only      scatter     n blocks, of the root -> bytes
//   allgather       bytes -> n blocks                        alltoall    n blocks -> n blocks
//   reduce_scatter  a vector of `bytes` in all -> this member's slice_of() it (reduce/slices.h)
enum class Kind : std::uint8_t {
    broadcast,
    barrier,
    reduce,
    allreduce,
    allgather,
    gather,
    scatter,
    alltoall,
    reduce_scatter
};

// Each member has a block of its own, or one for each other.
constexpr bool moves_blocks(Kind kind) {
    return kind >= Kind::allgather;
}

struct Leg {
    Kind kind = Kind::broadcast;
    std::uint64_t number = 0;  // of the operation in its group
    std::uint32_t root = 0;    // where there is one: a member of this level
    // A broadcast's message; the result of a reduction, everybody's blocks of an allgather.
    std::byte* buffer = nullptr;
    const std::byte* input = nullptr;  // this member's contribution, may be the buffer
    std::size_t bytes = 0;             // of the message, the vector, or one block
    Combiner combiner;
    // Barrier and allreduce: when all contributions are in the leader's buffer it is told (gathered), and the
    // result goes to the others only when it is released.
    bool hold = false;

    // Said by who walks the levels, followed by Level::advance().
    std::size_t ready = 0;  // at a broadcast's root: so many bytes, from the first, may be passed on
    bool released = false;

    // Said by the level.
    std::size_t arrived = 0;  // elsewhere: so many bytes, from the first, are in the buffer
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
    virtual std::string_view algorithm() const = 0;
};

}  // namespace mcastcoll::levels
