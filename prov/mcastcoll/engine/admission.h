// The join, up and down the gather tree: a member whose subtree listens tells its parent (ready), and rank 0
// then opens the first election about the multicast, whose verdict is the end of the join. Also the pings
// that measure how far the members are from each other.
#pragma once

#include "engine/core.h"
#include "engine/readiness.h"

namespace mcastcoll::engine {

class Admission {
  public:
    explicit Admission(Core& core) : core_(core), readiness_(core.children.count) {}

    // This member listens; or a child's subtree does. True: all do, and rank 0 is to open the election.
    bool start();
    bool on_ready(const wire::Header& header);
    void on_ping(const wire::Header& header) { pongs_.push(header); }
    void on_pong(const wire::Header& header);
    Nanoseconds next_deadline() const {
        return core_.phase == Phase::forming ? readiness_.next_deadline() : kNever;
    }
    void on_timeout() {
        if (core_.phase == Phase::forming) readiness_.on_timeout(core_.now);
    }
    bool next_message(Effect& effect) { return has_message() && make_message(effect); }

  private:
    bool has_message() const { return readiness_.due() || core_.round_trip.ping_due() || !pongs_.empty(); }
    bool make_message(Effect& effect);
    bool check_ready();
    Rank member_before() const;

    Core& core_;
    Readiness readiness_;
    Ring<wire::Header> pongs_{16};
};

}  // namespace mcastcoll::engine
