// Faults of the network between a sender and a receiver: a plain description (Faults), and the random draws
// for every datagram and message (FaultInjector). Indices refer to hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "random.h"
#include "wire/packet.h"

namespace mcastcoll::sim {

struct Window {
    Nanoseconds from{}, to = kNever;
    bool covers(Nanoseconds now) const { return now >= from && now < to; }
};

struct Faults {
    // Of multicast copies, shares from 0 to 1.
    double loss = 0;         // independent for each receiver
    double switch_loss = 0;  // all receivers lose the same datagram
    // Bursts after Gilbert and Elliott, per receiver: probabilities to enter the bad state, to leave it, and
    // to lose a copy while in it.
    double burst_begin = 0, burst_end = 1, burst_loss = 1;
    // Bursts measured in time, independent of traffic: the share of time in which a receiver gets no
    // datagram, and the mean length of such a burst.
    double fade = 0;
    Nanoseconds fade_length = Nanoseconds::from_us(20);
    std::uint32_t nth = 0;  // every nth copy is lost
    struct AtHost {
        std::uint32_t host = 0;
        double loss = 0;
    };
    std::vector<AtHost> receiver_loss;
    double duplicate = 0, corrupt = 0;  // a second copy; one byte changed
    double reorder = 0;                 // share that is late by reorder_delay
    Nanoseconds reorder_delay = Nanoseconds::from_us(50);
    struct Outage {
        Window when;
        std::uint32_t host = 0;
    };
    std::vector<Outage> dead;        // all multicasts are lost
    std::vector<Outage> deaf, mute;  // multicasts to one receiver, or from one sender, are lost
    // Hosts below this one are separated from the others: multicasts between the two parts are lost; with
    // splits, messages between them also wait until the end.
    std::vector<Outage> partitions, splits;

    // Of messages.
    double message_loss = 0;  // late by the network's retransmission time
    double spike = 0;         // late by spike_delay
    Nanoseconds spike_delay = Nanoseconds::from_ms(2);
    bool messages_overtake = false;  // messages of a pair do not wait for each other

    // Of both.
    Nanoseconds jitter{};  // late by up to this
    struct Slow {
        std::uint32_t host = 0;
        float factor = 1;
    };
    std::vector<Slow> slow;        // everything on the host takes this many times as long
    double backpressure = 0;       // share of polls at which the host's sending is refused
    Nanoseconds heal_at = kNever;  // end of all faults above

    // For tests: true drops this datagram for this rank of the only group.
    std::function<bool(const wire::Header&, Rank receiver)> drop;
    Window spikes;  // when messages may be late by spike_delay
    // Breaks the guarantee that messages are reliable, to test the oracles.
    std::function<bool(const wire::Header&, Rank receiver)> lose_message;
};

// The syntax of --faults: "loss=1%,delay=30us,dead=1ms-5ms,slow=3:10"; faults_help() lists the words.
Result<Faults> parse_faults(std::string_view text);
std::string to_string(const Faults& faults);
const char* faults_help();

class FaultInjector {
  public:
    FaultInjector(const Faults& faults, std::uint32_t hosts, std::uint64_t seed);

    const Faults& faults() const { return faults_; }
    // Multicasts are not affected by any fault: receivers need not be examined one by one.
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
    // End of the delay of a pair's messages behind a late one; only for pairs with a late message.
    std::unordered_map<std::uint64_t, Nanoseconds> held_until_;
};

}  // namespace mcastcoll::sim
