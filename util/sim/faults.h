// Faults of the network between a sender and a receiver: a plain description. fault_injector.h has the random
// draws for every datagram and message. Indices refer to hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/packet.h"

namespace mcastcoll::sim {

struct Faults {
    struct Window {
        Nanoseconds from{}, to = kNever;
        bool covers(Nanoseconds now) const { return now >= from && now < to; }
    };

    // Faults of multicast copies, as shares from 0 to 1.
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

    // Faults of messages, as shares from 0 to 1.
    double message_loss = 0;  // late by the network's retransmission time
    double spike = 0;         // late by spike_delay
    Nanoseconds spike_delay = Nanoseconds::from_ms(2);
    bool messages_overtake = false;  // messages of a pair do not wait for each other

    // Faults of multicast copies and of messages.
    Nanoseconds jitter{};  // late by up to this
    struct Slow {
        std::uint32_t host = 0;
        float factor = 1;
    };
    std::vector<Slow> slow;        // everything on the host takes this many times as long
    double backpressure = 0;       // share of polls at which the host's sending is refused
    Nanoseconds heal_at = kNever;  // end of all faults above

    // For tests: if this returns true, the datagram is lost for this rank of the only group.
    std::function<bool(const wire::Header&, Rank receiver)> drop;
    Window spikes;  // when messages may be late by spike_delay
    // Breaks the guarantee that messages are reliable, to test the oracles.
    std::function<bool(const wire::Header&, Rank receiver)> lose_message;
};

// The syntax of --faults: "loss=1%,delay=30us,dead=1ms-5ms,slow=3:10"; faults_help() lists the words.
Result<Faults> parse_faults(std::string_view text);
std::string to_string(const Faults& faults);
const char* faults_help();

}  // namespace mcastcoll::sim
