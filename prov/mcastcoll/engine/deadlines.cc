#include "engine/deadlines.h"

namespace mcastcoll::engine {

// A quarter of a round trip: a loss then costs little more than one round trip.
Nanoseconds Deadlines::gap() const {
    return std::clamp(Nanoseconds{round_trip_.mean().value / 4}, config_.min_gap,
                      std::max(config_.min_gap, config_.max_silence));
}

// Usual time until a fragment arrives. An early NAK costs two messages, a late NAK delays the whole group, so
// the bounds are a few round trips.
Nanoseconds Deadlines::usual_silence(const Slot& slot) const {
    const std::int64_t round_trip = round_trip_.mean().value;
    const Nanoseconds usual = min_wait();
    const Nanoseconds max = std::max({config_.max_silence, Nanoseconds{8 * round_trip}, usual});
    if (!slot.reception.ever) {
        const Sort sort = sort_of(slot);
        const Nanoseconds longest = sort == barriers  ? std::max(usual, longest_release())
                                    : sort == results ? std::max(max, config_.lossless_silence)
                                                      : max;
        return firsts_[sort].deadline(usual, longest);
    }
    if (awaits_reports(slot)) return arrival_gap_.deadline(4, usual, max);
    const Nanoseconds min = std::max(config_.min_tail, Nanoseconds{round_trip / 2});
    return std::clamp(slot.reception.longest_gap + slot.reception.longest_gap, stream_gap_.deadline(min, max),
                      max);
}

// A barrier ends when the last member has entered. If the deadline followed every release, a late repair at
// one member would make repairs at its peers as late next time. So the deadline is a few round trips, or,
// where cores are busy, a few times the quickest releases.
Nanoseconds Deadlines::longest_release() const {
    const std::int64_t busy = std::min(4 * firsts_[barriers].quick().value, 10 * config_.min_silence.value);
    return Nanoseconds{std::max(4 * round_trip_.mean().value, busy)};
}

// Time for a NAK to climb the tree, plus one multicast back.
Nanoseconds Deadlines::root_nak(std::int64_t hops) const {
    const Nanoseconds min = std::max(config_.min_tail, Nanoseconds{hops * round_trip_.mean().value / 2});
    return root_nak_answer_.deadline(4, min, Nanoseconds{4 * min.value});
}

void Deadlines::on_gap(const Slot& slot, Nanoseconds gap) {
    arrival_gap_.sample(gap);
    if (slot.reception.revealed < config_.window && !slot.reception.partial) stream_gap_.sample(gap);
}

}  // namespace mcastcoll::engine
