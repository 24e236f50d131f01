// The random draws of the network's faults for every datagram and message.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "faults.h"
#include "random.h"

namespace mcastcoll::sim {

class FaultInjector {
  public:
    FaultInjector(const Faults& faults, std::uint32_t hosts, std::uint64_t seed);

    const Faults& faults() const { return faults_; }
    // Whether no fault can affect a multicast now, so that receivers need not be examined one by one.
    bool fault_free(Nanoseconds now) const { return no_multicast_faults_ || healed(now); }
    bool loses_for_all(Nanoseconds now) { return !healed(now) && random_.chance(faults_.switch_loss); }
    bool loses_copy(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver);
    bool duplicates(Nanoseconds now) { return !healed(now) && random_.chance(faults_.duplicate); }
    bool corrupts(Nanoseconds now) { return !healed(now) && random_.chance(faults_.corrupt); }
    Nanoseconds copy_delay(Nanoseconds now);
    // The arrival time of a message that would arrive at `at` without faults.
    Nanoseconds message_arrival(Nanoseconds at, std::uint32_t sender, std::uint32_t receiver,
                                Nanoseconds retransmission);
    bool refuses(Nanoseconds now) { return !healed(now) && random_.chance(faults_.backpressure); }
    std::uint64_t draw() { return random_.next(); }

  private:
    bool healed(Nanoseconds now) const { return now >= faults_.heal_at; }
    bool fades(Nanoseconds now, std::uint32_t receiver);
    bool silenced(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) const;

    const Faults faults_;
    bool no_multicast_faults_, no_message_faults_;
    Random random_;
    std::uint64_t copies_ = 0;
    std::vector<bool> in_burst_;
    struct Fading {
        bool now = false;
        Nanoseconds until{};
    };
    std::vector<Fading> fading_;
    std::vector<double> receiver_loss_;  // empty if equal for all receivers
    // By pair of hosts with a late message: when that message arrives, and with it the messages behind it.
    std::unordered_map<std::uint64_t, Nanoseconds> held_until_;
};

}  // namespace mcastcoll::sim
