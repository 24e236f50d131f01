// Limits the rate at which hellos (the datagrams by which members announce their joins) are read from the
// service socket, so that a flood of datagrams takes little time from the groups. After a read of the maximum
// number, or of foreign datagrams, the socket is not read for a pause, unless a group of this endpoint awaits
// its welcome. The kernel drops datagrams beyond the socket buffer, and genuine hellos are repeated.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/types.h"
#include "transport/rendezvous.h"

namespace mcastcoll::ports {

class ServicePace {
  public:
    static constexpr unsigned kMaxAtWork = 8;
    static constexpr Nanoseconds kPause = Nanoseconds::from_ms(1);
    // Returns the maximum number of datagrams to read now. joining: a group awaits its welcome. works: groups
    // have operations in progress.
    unsigned may_read(bool joining, bool works, Nanoseconds now) const {
        if (rests_until(joining, now) > now) return 0;
        return works && !joining ? kMaxAtWork : transport::Rendezvous::kReceiveLimit;
    }
    void has_read(std::size_t count, unsigned of, bool foreign, Nanoseconds now) {
        if (foreign || (of > 0 && count >= of)) paused_until_ = now + kPause;
    }
    // End of the pause; `now` if there is none.
    Nanoseconds rests_until(bool joining, Nanoseconds now) const {
        return joining ? now : std::max(paused_until_, now);
    }

  private:
    Nanoseconds paused_until_{};
};

}  // namespace mcastcoll::ports
