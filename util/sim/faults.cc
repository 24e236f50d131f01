#include "faults.h"

#include <algorithm>

namespace mcastcoll::sim {
namespace {

bool apart(const Faults::Partition& partition, std::uint32_t a, std::uint32_t b) {
    return (a < partition.cut) != (b < partition.cut);
}

}  // namespace

Weather::Weather(const Faults& faults, std::uint32_t hosts, std::uint64_t seed)
    : faults_(faults),
      fair_for_multicasts_(faults.loss <= 0 && faults.switch_loss <= 0 && faults.burst_begin <= 0 &&
                           faults.nth == 0 && faults.receiver_loss.empty() && faults.duplicate <= 0 &&
                           faults.corrupt <= 0 && faults.reorder <= 0 && faults.silences.empty() &&
                           faults.partitions.empty() && faults.jitter.value <= 0 && !faults.drop),
      fair_for_messages_(faults.message_loss <= 0 && faults.spike <= 0 && faults.jitter.value <= 0 &&
                         faults.partitions.empty()),
      random_(seed),
      in_burst_(faults.burst_begin > 0 ? hosts : 0) {
    if (!faults.receiver_loss.empty()) receiver_loss_.resize(hosts);
    for (const Faults::AtHost& one : faults.receiver_loss)
        if (one.host < hosts) receiver_loss_[one.host] = one.amount;
}

bool Weather::silenced(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) const {
    for (const Faults::Silence& silence : faults_.silences) {
        const bool theirs = (silence.sender == kAnybody || silence.sender == sender) &&
                            (silence.receiver == kAnybody || silence.receiver == receiver);
        if (theirs && silence.when.covers(now)) return true;
    }
    return std::any_of(faults_.partitions.begin(), faults_.partitions.end(), [&](const auto& partition) {
        return partition.when.covers(now) && apart(partition, sender, receiver);
    });
}

bool Weather::loses_copy(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) {
    if (healed(now)) return false;
    if (random_.chance(faults_.loss)) return true;
    if (silenced(now, sender, receiver)) return true;
    if (!receiver_loss_.empty() && random_.chance(receiver_loss_[receiver])) return true;
    if (faults_.nth > 0 && ++copies_ % faults_.nth == 0) return true;
    if (in_burst_.empty()) return false;
    in_burst_[receiver] =
        in_burst_[receiver] ? !random_.chance(faults_.burst_end) : random_.chance(faults_.burst_begin);
    return in_burst_[receiver] && random_.chance(faults_.burst_loss);
}

Nanoseconds Weather::copy_delay(Nanoseconds now) {
    if (healed(now)) return {};
    const Nanoseconds late = random_.up_to(faults_.jitter);
    return random_.chance(faults_.reorder) ? late + faults_.reorder_delay : late;
}

Nanoseconds Weather::message_arrival(Nanoseconds at, std::uint32_t sender, std::uint32_t receiver,
                                     Nanoseconds retransmission) {
    if (fair_for_messages_) return at;
    const Nanoseconds planned = at;
    if (!healed(at)) {
        at = at + random_.up_to(faults_.jitter);
        if (random_.chance(faults_.spike) && faults_.spikes.covers(planned)) at = at + faults_.spike_delay;
        // A retransmission can be lost like the first attempt, and waits longer each time.
        for (int doubled = 0; doubled < 6 && random_.chance(faults_.message_loss); ++doubled)
            at = at + Nanoseconds{retransmission.value << doubled};
        for (const Faults::Partition& partition : faults_.partitions)
            if (partition.messages && partition.when.covers(planned) && apart(partition, sender, receiver))
                at = std::max(at, std::min(partition.when.to, faults_.heal_at) + retransmission);
    }
    if (faults_.messages_overtake) return at;
    const std::uint64_t pair = std::uint64_t{sender} << 32 | receiver;
    const auto held = held_until_.find(pair);
    if (held != held_until_.end()) {
        at = std::max(at, held->second + Nanoseconds{1});
        if (at == planned) {  // the late one is in
            held_until_.erase(held);
            return at;
        }
    }
    if (at > planned) held_until_[pair] = at;
    return at;
}

}  // namespace mcastcoll::sim
