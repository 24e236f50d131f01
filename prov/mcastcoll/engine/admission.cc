#include "engine/admission.h"

namespace mcastcoll::engine {

bool Admission::on_ready(const wire::Header& header) {
    const std::uint32_t child = core_.child_of(header);
    if (child == kMaxArity || (unready_ >> child & 1) == 0) return false;
    unready_ &= ~(1U << child);
    return check_ready();
}

bool Admission::check_ready() {
    if (!started_ || unready_ != 0) return false;
    if (core_.parent != kNoRank) report_ready();
    return core_.parent == kNoRank;
}

void Admission::report_ready() {
    ready_due_ = true;
    ready_at_ = core_.now + interval_;
    interval_ = std::min(Nanoseconds{2 * interval_.value}, kMaxReadyInterval);
}

// This member measures the round trip to the preceding rank.
Rank Admission::member_before() const {
    return rank_of((index_of(core_.self()) + core_.config.members - 1) % core_.config.members);
}

bool Admission::make_message(Effect& effect) {
    const OperationId none{};
    if (std::exchange(ready_due_, false)) return core_.message(effect, wire::Kind::ready, core_.parent, none);
    if (core_.round_trip.ping_due()) {
        core_.round_trip.on_ping(core_.now);
        return core_.message(effect, wire::Kind::ping, member_before(), none, 0,
                             static_cast<std::uint64_t>(core_.now.value));
    }
    const wire::Header ping = pongs_.front();
    pongs_.pop();
    return core_.message(effect, wire::Kind::pong, ping.sender, none, 0, ping.total);
}

// Only a pong from the pinged rank that answers the pending ping counts.
void Admission::on_pong(const wire::Header& header) {
    const Nanoseconds pinged_at{static_cast<std::int64_t>(header.total)};
    if (header.sender != member_before() || !core_.round_trip.on_pong(pinged_at, core_.now))
        drop(core_.counters.unexpected_kind);
}

}  // namespace mcastcoll::engine
