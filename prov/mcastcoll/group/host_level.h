// The level inside a host, in shared memory. Members are numbered by their places on the host.
#pragma once

#include <string>

#include "group/level_counters.h"
#include "group/member_table.h"
#include "levels/level.h"

namespace mcastcoll::group {

class HostLevel : public levels::Level {
  public:
    // Ends the operations of this level with `error`, because of a lost member, given by its place on the
    // host.
    virtual void end_because_of(std::uint32_t member, int error) = 0;
    // Positive FI_E* code with which another process of this host ended the level, else 0.
    virtual int failure() const = 0;
    // The place of the lost member on the host, or an invalid place.
    virtual std::uint32_t lost() const = 0;
    // The rank of a lost member of another host, for the log of this host's processes, or kNoRank.
    virtual Rank lost_elsewhere() const { return kNoRank; }
    // Stores the rank for lost_elsewhere(). Called before the level fails because of this member.
    virtual void name_lost_elsewhere(Rank) {}
    // The place of the member for which the oldest open operation waits.
    virtual std::uint32_t awaited() const = 0;
    virtual std::string explain() const = 0;
    virtual void add_counters(LevelCounters& sum) const = 0;
    // The member table that the leader has stored in the shared memory.
    virtual SharedBytes table() const = 0;
};

}  // namespace mcastcoll::group
