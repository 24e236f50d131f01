// The level inside a host, as a group sees it: shared memory, which the process provides (port.h).
#pragma once

#include <cstdint>
#include <string>

#include "group/level_counters.h"
#include "levels/level.h"

namespace mcastcoll::group {

// Members are counted by their places on the host.
class HostLevel : public levels::Level {
  public:
    // Ends every leg, because of this member.
    virtual void end_because_of(std::uint32_t member, int error) = 0;
    // Why others of this host have ended it, a positive FI_E* code, and whose death was the reason; 0, and
    // nobody's place, when none has.
    virtual int failure() const = 0;
    virtual std::uint32_t lost() const = 0;
    // Who was last waited for in vain.
    virtual std::uint32_t awaited() const = 0;
    virtual std::string explain() const = 0;
    virtual void add_counters(LevelCounters& sum) const = 0;
};

}  // namespace mcastcoll::group
