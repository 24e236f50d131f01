// Whoever waits for somebody longer than the watch delay has that process watched. When one is lost, or an
// operation has not come closer to its end for too long, the group fails: the first to know tells all the
// others, and nobody waits for a dead member.
#pragma once

#include "engine/checkpoint.h"
#include "engine/gatherer.h"

namespace mcastcoll::engine {

// How many watched ranks are remembered.
inline constexpr std::uint32_t kMostWatched = 256;

// The members whose processes somebody is to watch: each asked for once, as far as this remembers. Who falls
// out of its memory may be asked for again, which does no harm.
class WatchList {
  public:
    explicit WatchList(std::size_t most) : asked_(most, kNoRank), due_(most) {}

    void ask(Rank rank) {
        if (std::find(asked_.begin(), asked_.end(), rank) != asked_.end() || !due_.push(rank)) return;
        asked_[next_++ % asked_.size()] = rank;
    }
    // Who is to be watched next; kNoRank: nobody.
    Rank take() {
        if (due_.empty()) return kNoRank;
        const Rank rank = due_.front();
        due_.pop();
        return rank;
    }

  private:
    std::vector<Rank> asked_;  // the latest
    std::size_t next_ = 0;
    Ring<Rank> due_;
};

class FailureDetector {
  public:
    FailureDetector(Core& core, const Checkpoint& checkpoint, Gatherer& gatherer)
        : core_(core),
          checkpoint_(checkpoint),
          gatherer_(gatherer),
          watches_(std::min(core.config.members, kMostWatched)) {}

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
        const Rank rank = watches_.take();
        if (rank == kNoRank) return false;
        effect = {.kind = Effect::Kind::watch, .to = rank};
        return true;
    }

  private:
    bool make_message(Effect& effect);
    void scan();
    void check_stall();
    bool waits_for_somebody() const;
    bool owes_report(const Slot& slot) const;
    Rank waits_for(Slot& slot) const;
    void watch(Rank rank);
    void watch_slot(const Slot& slot);

    Core& core_;
    const Checkpoint& checkpoint_;
    Gatherer& gatherer_;
    WatchList watches_;
    Nanoseconds scan_at_ = kNever;
};

}  // namespace mcastcoll::engine
