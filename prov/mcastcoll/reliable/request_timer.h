// Time of the next request to a member that has not answered. The number of requests is limited, because an
// id may be forged.
#pragma once

#include "base/types.h"

namespace mcastcoll::reliable {

class RequestTimer {
  public:
    explicit RequestTimer(Nanoseconds now);
    Nanoseconds deadline() const { return at_; }
    void stop() { at_ = kNever; }
    void requested(Nanoseconds now);
    // The member has sent a packet, but no answer.
    void resume(Nanoseconds now);

  private:
    Nanoseconds at_, pause_;
    unsigned left_;
};

}  // namespace mcastcoll::reliable
