#include "fault_injector.h"

#include <algorithm>

#include "text.h"

namespace mcastcoll::sim {
namespace {

bool apart(const Faults::Outage& outage, std::uint32_t a, std::uint32_t b) {
    return (a < outage.host) != (b < outage.host);
}

}  // namespace

FaultInjector::FaultInjector(const Faults& faults, std::uint32_t hosts, std::uint64_t seed)
    : faults_(faults),
      no_multicast_faults_(
          faults.loss <= 0 && faults.switch_loss <= 0 && faults.burst_begin <= 0 && faults.fade <= 0 &&
          faults.nth == 0 && faults.receiver_loss.empty() && faults.duplicate <= 0 && faults.corrupt <= 0 &&
          faults.reorder <= 0 && faults.dead.empty() && faults.deaf.empty() && faults.mute.empty() &&
          faults.partitions.empty() && faults.splits.empty() && faults.jitter.value <= 0 && !faults.drop),
      no_message_faults_(faults.message_loss <= 0 && faults.spike <= 0 && faults.jitter.value <= 0 &&
                         faults.splits.empty()),
      random_(seed),
      in_burst_(faults.burst_begin > 0 ? hosts : 0),
      fading_(faults.fade > 0 ? hosts : 0) {
    if (!faults.receiver_loss.empty()) receiver_loss_.resize(hosts);
    for (const Faults::AtHost& one : faults.receiver_loss)
        if (one.host < hosts) receiver_loss_[one.host] = one.loss;
}

bool FaultInjector::silenced(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) const {
    const auto any = [now](const std::vector<Faults::Outage>& outages, auto&& between) {
        return std::ranges::any_of(
            outages, [&](const Faults::Outage& one) { return one.when.covers(now) && between(one); });
    };
    const auto parted = [&](const Faults::Outage& one) { return apart(one, sender, receiver); };
    return any(faults_.dead, [](const auto&) { return true; }) ||
           any(faults_.deaf, [&](const auto& one) { return one.host == receiver; }) ||
           any(faults_.mute, [&](const auto& one) { return one.host == sender; }) ||
           any(faults_.partitions, parted) || any(faults_.splits, parted);
}

bool FaultInjector::loses_copy(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) {
    if (healed(now)) return false;
    if (random_.chance(faults_.loss)) return true;
    if (silenced(now, sender, receiver)) return true;
    if (!receiver_loss_.empty() && random_.chance(receiver_loss_[receiver])) return true;
    if (faults_.nth > 0 && ++copies_ % faults_.nth == 0) return true;
    if (!fading_.empty() && fades(now, receiver)) return true;
    if (in_burst_.empty()) return false;
    in_burst_[receiver] =
        in_burst_[receiver] ? !random_.chance(faults_.burst_end) : random_.chance(faults_.burst_begin);
    return in_burst_[receiver] && random_.chance(faults_.burst_loss);
}

// Good and bad periods alternate, each with a length drawn between zero and twice its mean.
bool FaultInjector::fades(Nanoseconds now, std::uint32_t receiver) {
    Fading& one = fading_[receiver];
    const auto bad = static_cast<double>(faults_.fade_length.value);
    while (one.until <= now) {
        one.now = !one.now && one.until > Nanoseconds{};
        const double mean = one.now ? bad : bad * (1 - faults_.fade) / faults_.fade;
        one.until = one.until + Nanoseconds{1 + static_cast<std::int64_t>(2 * mean * random_.unit())};
    }
    return one.now;
}

Nanoseconds FaultInjector::copy_delay(Nanoseconds now) {
    if (healed(now)) return {};
    const Nanoseconds late = random_.up_to(faults_.jitter);
    return random_.chance(faults_.reorder) ? late + faults_.reorder_delay : late;
}

Nanoseconds FaultInjector::message_arrival(Nanoseconds at, std::uint32_t sender, std::uint32_t receiver,
                                           Nanoseconds retransmission) {
    if (no_message_faults_) return at;
    const Nanoseconds usual_at = at;
    if (!healed(at)) {
        at = at + random_.up_to(faults_.jitter);
        if (random_.chance(faults_.spike) && faults_.spikes.covers(usual_at)) at = at + faults_.spike_delay;
        // A retransmission can be lost like the first attempt, and waits longer each time.
        for (int doubled = 0; doubled < 6 && random_.chance(faults_.message_loss); ++doubled)
            at = at + Nanoseconds{retransmission.value << doubled};
        for (const Faults::Outage& split : faults_.splits)
            if (split.when.covers(usual_at) && apart(split, sender, receiver))
                at = std::max(at, std::min(split.when.to, faults_.heal_at) + retransmission);
    }
    if (faults_.messages_overtake) return at;
    const std::uint64_t pair = std::uint64_t{sender} << 32 | receiver;
    const auto held = held_until_.find(pair);
    if (held != held_until_.end()) {
        at = std::max(at, held->second + Nanoseconds{1});
        if (at == usual_at) {  // the late message has arrived
            held_until_.erase(held);
            return at;
        }
    }
    if (at > usual_at) held_until_[pair] = at;
    return at;
}

}  // namespace mcastcoll::sim
