// Deadlines after which a member sends a NAK, from measurements of its group.
//
// Before any fragment of an operation has arrived: a quarter more than the third largest of the last 16 first
// arrivals (recent_times.h), at least 1.5 round trips. For the release of a barrier at most four round trips
// or, where cores are busy, four times the quickest quarter of those 16 (at most 10 times min_silence: 3 ms).
// Results of more than 7 fragments come much later than releases of barriers: their times are measured
// separately, and a member waits up to 10 ms for them. If nothing of a message of that length has arrived,
// the NAK names one fragment: most likely the message was not multicast yet, and a NAK for all of it would
// make this member, and each member to which the NAK is forwarded, receive by message what is multicast a
// moment later.
//
// After the first fragment, the gaps between fragments (of all messages, and twice the longest of this one)
// reveal a lost run early, as long as the root need not wait for reports, the acknowledgements of receivers
// (flow_control.h).
//
// While the group loses nothing (redundancy_policy.h), a silent peer most likely is a process that is not
// scheduled. Silence must then last lossless_silence (10 ms), and four times as long where the root may wait
// for reports. The first loss after a long time costs that delay; for about 2,000 fragments after it the
// deadlines above apply. A hole is no silence and keeps its short deadline.
#pragma once

#include "engine/recent_times.h"
#include "engine/redundancy_policy.h"
#include "engine/round_trip.h"
#include "engine/slot.h"

namespace mcastcoll::engine {

class Deadlines {
  public:
    Deadlines(const GroupConfig& config, const RoundTrip& round_trip, const RedundancyPolicy& losses)
        : config_(config),
          round_trip_(round_trip),
          losses_(losses),
          arrival_gap_(config.initial_rtt),
          root_nak_answer_(config.initial_rtt) {}

    // Time for which a hole counts as reordering, not as a loss.
    Nanoseconds gap() const;
    // Time of silence before a NAK, in which the root may not have sent yet: `silence_factor` times the usual
    // time until a fragment arrives.
    Nanoseconds silence(const Slot& slot, std::int64_t silence_factor = 1) const {
        const Nanoseconds usual{silence_factor * usual_silence(slot).value};
        if (!losses_.lossless()) return usual;
        // A root that waits for reports waits for members on other hosts.
        return std::max(usual, Nanoseconds{(awaits_reports(slot) ? 4 : 1) * config_.lossless_silence.value});
    }
    // Delay of a copy by the root where losses come in bursts.
    Nanoseconds copy() const { return Nanoseconds{min_wait().value / 3}; }
    // Time in which a root at this distance in hops is expected to multicast again after a NAK.
    Nanoseconds root_nak(std::int64_t hops) const;

    // The first fragment of an operation has arrived.
    void on_first(const Slot& slot, Nanoseconds now) { firsts_[sort_of(slot)].sample(now - slot.posted_at); }
    // Time between two successive fragments.
    void on_gap(const Slot& slot, Nanoseconds gap);
    // The root has multicast again a fragment that a NAK of this member named.
    void on_root_nak_answer(Nanoseconds took) { root_nak_answer_.sample(took); }

  private:
    // Groups of operations whose first arrivals are measured together. Results of long vectors come much
    // later than short results and releases of barriers.
    enum Sort : std::size_t { broadcasts, barriers, results, sorts };
    static Sort sort_of(const Slot& slot) {
        if (!releases(slot.operation.kind)) return broadcasts;
        return slot.fragments <= RedundancyPolicy::kMaxCopied ? barriers : results;
    }
    // Shortest silence before a NAK.
    Nanoseconds min_wait() const {
        return std::max(config_.min_silence, Nanoseconds{3 * round_trip_.mean().value / 2});
    }
    Nanoseconds usual_silence(const Slot& slot) const;
    // The root may have to wait for reports of receivers, or for more data of its own.
    bool awaits_reports(const Slot& slot) const {
        return slot.reception.ever && (slot.reception.revealed >= config_.window || slot.reception.partial);
    }
    Nanoseconds longest_release() const;

    const GroupConfig& config_;
    const RoundTrip& round_trip_;
    const RedundancyPolicy& losses_;
    SmoothedTime arrival_gap_, root_nak_answer_;
    std::array<RecentTimes, sorts> firsts_;
    RecentTimes stream_gap_;
};

}  // namespace mcastcoll::engine
