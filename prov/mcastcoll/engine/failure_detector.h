// Whoever waits for somebody longer than the watch delay has that process watched. When one is lost, or an
// operation has not come closer to its end for too long, the group fails: the first to know tells all the
// others, and nobody waits for a dead member.
#pragma once

#include "engine/checkpoint.h"
#include "engine/gatherer.h"

namespace mcastcoll::engine {

// How many watched ranks are remembered. Who falls out of this memory may be asked for again, which does no
// harm.
inline constexpr std::uint32_t kMostWatched = 256;

class FailureDetector {
  public:
    FailureDetector(Core& core, const Checkpoint& checkpoint, Gatherer& gatherer)
        : core_(core),
          checkpoint_(checkpoint),
          gatherer_(gatherer),
          watched_(std::min(core.config.members, kMostWatched), kNoRank),
          watch_due_(watched_.size()) {}

    // Something happens: there may be somebody to wait for.
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
    // Somebody is to watch the process of this member, if there is one and it is not this one.
    void watch(Rank rank);

  private:
    bool make_message(Effect& effect);
    bool tell(Effect& effect, Rank to);
    void scan();
    void check_stall();
    bool owes_report(const Slot& slot) const;
    Rank waits_for(Slot& slot) const;
    void watch_slot(const Slot& slot);

    Core& core_;
    const Checkpoint& checkpoint_;
    Gatherer& gatherer_;
    std::vector<Rank> watched_;  // the latest
    std::size_t next_watched_ = 0;
    Ring<Rank> watch_due_;
    Nanoseconds scan_at_ = kNever;
};

}  // namespace mcastcoll::engine
