// The weather: everything that can go wrong between a sender and a receiver, as a plain description (Faults)
// and as the dice that are thrown for every datagram and message (Weather). Hosts are meant wherever a number
// names somebody.
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
    double loss = 0;         // each receiver by itself
    double switch_loss = 0;  // all receivers lose the same datagram
    // Gilbert and Elliott's bursts, per receiver: into the bad state, out of it, and lost while in it.
    double burst_begin = 0, burst_end = 1, burst_loss = 1;
    // Bursts that last for a time, whatever is sent: a receiver hears nothing for that share of the time, for
    // so long on average.
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
    std::vector<Outage> dead;        // nobody's multicasts reach anybody
    std::vector<Outage> deaf, mute;  // nor do those to one receiver, those of one sender
    // Hosts below this one and the others are apart: multicasts between them are lost, messages, where they
    // are split, wait until it is over.
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
    std::vector<Slow> slow;        // all that a host does takes this many times as long
    double backpressure = 0;       // share of polls at which a host's sending is refused
    Nanoseconds heal_at = kNever;  // everything above is over from here on

    // By hand, for tests: true drops this datagram for this rank of the only group.
    std::function<bool(const wire::Header&, Rank receiver)> drop;
    Window spikes;  // when messages may be late by spike_delay
    // Breaks the promise that messages are reliable, to prove that the oracles notice.
    std::function<bool(const wire::Header&, Rank receiver)> lose_message;
};

// The little language of --faults: "loss=1%,delay=30us,dead=1ms-5ms,slow=3:10"; faults_help() lists the
// words.
Result<Faults> parse_faults(std::string_view text);
std::string to_string(const Faults& faults);
const char* faults_help();

class Weather {
  public:
    Weather(const Faults& faults, std::uint32_t hosts, std::uint64_t seed);

    const Faults& faults() const { return faults_; }
    // Nothing can happen to a multicast: its receivers need not be looked at one by one.
    bool fair(Nanoseconds now) const { return fair_for_multicasts_ || healed(now); }
    bool loses_for_all(Nanoseconds now) { return !healed(now) && random_.chance(faults_.switch_loss); }
    bool loses_copy(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver);
    bool duplicates(Nanoseconds now) { return !healed(now) && random_.chance(faults_.duplicate); }
    bool corrupts(Nanoseconds now) { return !healed(now) && random_.chance(faults_.corrupt); }
    Nanoseconds copy_delay(Nanoseconds now);
    // When a message that would arrive at `at` really does.
    Nanoseconds message_arrival(Nanoseconds at, std::uint32_t sender, std::uint32_t receiver,
                                Nanoseconds retransmission);
    bool refuses(Nanoseconds now) { return !healed(now) && random_.chance(faults_.backpressure); }
    std::uint64_t draw() { return random_.next(); }

  private:
    bool healed(Nanoseconds now) const { return now >= faults_.heal_at; }
    bool fades(Nanoseconds now, std::uint32_t receiver);
    bool silenced(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) const;

    const Faults faults_;
    bool fair_for_multicasts_, fair_for_messages_;
    Random random_;
    std::uint64_t copies_ = 0;
    std::vector<bool> in_burst_;
    struct Fading {
        bool now = false;
        Nanoseconds until{};
    };
    std::vector<Fading> fading_;
    std::vector<double> receiver_loss_;  // empty when all have the same
    // Until when a pair's messages wait for one that is late; only pairs that have one.
    std::unordered_map<std::uint64_t, Nanoseconds> held_until_;
};

}  // namespace mcastcoll::sim
