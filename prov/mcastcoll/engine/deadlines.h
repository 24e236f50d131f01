// How long a member waits before it asks, by what it has measured of its group.
#pragma once

#include "engine/redundancy.h"
#include "engine/slots.h"

namespace mcastcoll::engine {

// How long a question to the rank before and its answer take, which most deadlines are made of.
//
// A ping goes out when the join is over and, while the network may be faster than what was seen, with later
// operations. The shortest one counts (README.md: Deadlines).
class RoundTrip {
  public:
    // initial: until something was measured. short_enough: no deadline gets shorter below. too_long: nobody
    // is so far away, very likely, but it was asleep.
    RoundTrip(Nanoseconds initial, Nanoseconds short_enough, Nanoseconds too_long)
        : short_enough_(short_enough), too_long_(too_long), mean_(initial) {}

    Nanoseconds mean() const { return mean_.mean(); }

    // A ping is due: at any rate, or if a shorter round trip would make a deadline shorter.
    void want_ping() { ping_due_ = true; }
    void want_shorter() {
        ping_due_ |= pinged_at_ == kNever && pings_ < kMaxPings && shortest_ > short_enough_;
    }
    bool ping_due() const { return ping_due_; }
    void on_ping(Nanoseconds now) {
        ping_due_ = false;
        pinged_at_ = now;
        ++pings_;
    }
    // The answer to the ping of that time. False, and no effect: there is no such ping.
    bool on_pong(Nanoseconds pinged_at, Nanoseconds now) {
        if (pinged_at_ == kNever || pinged_at != pinged_at_) return false;
        shortest_ = std::min(shortest_, now - pinged_at_);
        pinged_at_ = kNever;
        // Whoever has joined may sleep, or compute, before it reads its queues again: it is asked again.
        const bool overslept = shortest_ > too_long_ && pings_ < kMaxPings;
        ping_due_ |= overslept;
        if (overslept || (mean_.sampled() && shortest_ >= mean())) return true;
        mean_ = SmoothedTime(shortest_);
        mean_.sample(shortest_);
        return true;
    }
    // A question was answered. It may have been remembered, so that it counts for no more than twice what was
    // expected.
    void on_answer(Nanoseconds took) { mean_.sample(std::min(took, Nanoseconds{2 * mean().value})); }

  private:
    static constexpr unsigned kMaxPings = 16;
    Nanoseconds short_enough_, too_long_;
    SmoothedTime mean_;
    Nanoseconds shortest_ = kNever, pinged_at_ = kNever;
    unsigned pings_ = 0;
    bool ping_due_ = false;
};

class Deadlines {
  public:
    Deadlines(const GroupConfig& config, const RoundTrip& round_trip, const RedundancyPolicy& losses)
        : config_(config),
          round_trip_(round_trip),
          losses_(losses),
          arrival_gap_(config.initial_rtt),
          nack_answer_(config.initial_rtt) {}

    // How long a hole may be mere reordering.
    Nanoseconds gap() const;
    // How long silence may be mere waiting for the root: so many times what is usual.
    Nanoseconds silence(const Slot& slot, std::int64_t patience = 1) const {
        const Nanoseconds usual{patience * usual_silence(slot).value};
        if (!losses_.lossless()) return usual;
        // A root that waits for reports waits for members that are somewhere else.
        return std::max(usual, Nanoseconds{(awaits_reports(slot) ? 4 : 1) * config_.lossless_silence.value});
    }
    // How long a root waits with a copy where losses come in bursts.
    Nanoseconds copy() const { return Nanoseconds{least_wait().value / 3}; }
    // How long the root of this operation, so many hops away, may take to multicast again.
    Nanoseconds nack(std::int64_t hops) const;

    // The first of an operation has come.
    void on_first(const Slot& slot, Nanoseconds now) { firsts_[sort_of(slot)].sample(now - slot.posted_at); }
    // A fragment has come so long after the one before it.
    void on_gap(const Slot& slot, Nanoseconds gap);
    // The root has multicast again what it was asked for.
    void on_nack_answer(Nanoseconds took) { nack_answer_.sample(took); }

  private:
    // Whose first fragments are measured together. Results of long vectors come much later than those of
    // short ones and the ends of barriers.
    enum Sort : std::size_t { broadcasts, barriers, results, sorts };
    static Sort sort_of(const Slot& slot) {
        if (!releases(slot.operation.kind)) return broadcasts;
        return slot.fragments <= RedundancyPolicy::kMostCopied ? barriers : results;
    }
    // Silence lasts so long at least before anybody asks.
    Nanoseconds least_wait() const {
        return std::max(config_.least_silence, Nanoseconds{3 * round_trip_.mean().value / 2});
    }
    Nanoseconds usual_silence(const Slot& slot) const;
    // The root may not go on before others have posted, or before it has more itself.
    bool awaits_reports(const Slot& slot) const {
        return slot.hearing.ever && (slot.hearing.revealed >= config_.window || slot.hearing.partial);
    }
    Nanoseconds longest_release() const;

    const GroupConfig& config_;
    const RoundTrip& round_trip_;
    const RedundancyPolicy& losses_;
    SmoothedTime arrival_gap_, nack_answer_;
    std::array<RecentTimes, sorts> firsts_;
    RecentTimes stream_gap_;
};

}  // namespace mcastcoll::engine
