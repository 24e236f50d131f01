// A member that waits for a peer longer than the watch delay has the peer's process watched for its death
// (Effect::Kind::watch). When a member is lost, or an operation makes no progress for the stall timeout, the
// group fails: the first member to detect the failure informs its peers, so that no member waits for a dead
// peer.
#pragma once

#include "engine/checkpoint.h"
#include "engine/gatherer.h"

namespace mcastcoll::engine {

// Number of watched ranks that are remembered. A forgotten rank may be watched again, which is harmless.
inline constexpr std::uint32_t kMaxWatched = 256;

class FailureDetector {
  public:
    FailureDetector(Core& core, const Checkpoint& checkpoint, Gatherer& gatherer)
        : core_(core),
          checkpoint_(checkpoint),
          gatherer_(gatherer),
          watched_(std::min(core.config.members, kMaxWatched), kNoRank),
          watch_due_(watched_.size()) {}

    // Starts periodic scans for peers to watch, after an event since which this member may wait for a peer.
    void wake() {
        if (scan_at_ == kNever) scan_at_ = core_.now + core_.config.watch_delay;
    }
    void on_fail(const wire::Header& header);
    Nanoseconds next_deadline() const { return scan_at_; }
    void on_timeout() {
        if (scan_at_ <= core_.now) scan();
    }
    bool next_message(Effect& effect) { return core_.phase == Phase::failed && make_message(effect); }
    bool next_watch(Effect& effect) {
        if (watch_due_.empty()) return false;
        effect = {.kind = Effect::Kind::watch, .to = watch_due_.front()};
        watch_due_.pop();
        return true;
    }
    // Emits Effect::watch for this rank, except for kNoRank, this member itself, and ranks watched already.
    void watch(Rank rank);

  private:
    bool make_message(Effect& effect);
    bool send_failure(Effect& effect, Rank to);
    void scan();
    void check_stall();
    bool owes_report(const Slot& slot) const;
    Rank waits_for(Slot& slot) const;
    void watch_slot(const Slot& slot);

    Core& core_;
    const Checkpoint& checkpoint_;
    Gatherer& gatherer_;
    std::vector<Rank> watched_;  // the most recently watched ranks
    std::size_t next_watched_ = 0;
    Ring<Rank> watch_due_;
    Nanoseconds scan_at_ = kNever;
};

}  // namespace mcastcoll::engine
