// The level inside a host, in shared memory. Members are numbered by their places on the host.
#pragma once

#include <string>

#include "group/level_counters.h"
#include "group/member_table.h"
#include "levels/level.h"

namespace mcastcoll::group {

class HostLevel : public levels::Level {
  public:
    // Ends every level operation because of this member.
    virtual void end_because_of(std::uint32_t member, int error) = 0;
    // failure(): positive FI_E* code with which another process of this host ended the level, else 0. lost():
    // the host place of the lost member, or an invalid place.
    virtual int failure() const = 0;
    virtual std::uint32_t lost() const = 0;
    // The rank of a lost member of another host, for the log of this host's processes, or kNoRank. Set before
    // the level fails because of this member.
    virtual Rank lost_elsewhere() const { return kNoRank; }
    virtual void name_lost_elsewhere(Rank) {}
    // The member that was last awaited without success.
    virtual std::uint32_t awaited() const = 0;
    virtual std::string explain() const = 0;
    virtual void add_counters(LevelCounters& sum) const = 0;
    // The member table that the leader has put into the memory.
    virtual SharedBytes table() const = 0;
};

}  // namespace mcastcoll::group
