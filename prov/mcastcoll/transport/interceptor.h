// Interceptor: injects faults into received datagrams between a transport and its user. On a reliable
// network, it serves tests and measurements of the cost of repair. The random numbers come from a seed: the
// same datagrams suffer the same faults in every run.
//
// The interceptor owns the transport below it. Delayed datagrams are stored in slots that are allocated at
// construction.
#pragma once

#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "transport/multicast_transport.h"

namespace mcastcoll::transport {

struct InterceptorSpec {
    double loss_percent = 0;  // long-run fraction of all datagrams
    // Probability of losing the datagram after a lost one (Gilbert's model).
    double burst_percent = 0;
    double duplicate_percent = 0;  // delivered twice
    double corrupt_percent = 0;    // one byte changed
    unsigned nth = 0;              // additionally loses every nth datagram; 0: off
    unsigned delay = 0;            // each datagram is delayed by 0 to `delay` later ones, which reorders them
    std::uint64_t seed = 1;

    bool spoils() const {
        return loss_percent > 0 || duplicate_percent > 0 || corrupt_percent > 0 || nth > 0 || delay > 0;
    }
};

// Parses "loss=5,burst=20,nth=0,duplicate=1,corrupt=1,delay=3,seed=7": any of these items in any order; an
// empty text injects no faults. "loss=5,burst_length=4" is equivalent to "loss=5,burst=75" and gives the mean
// length of a burst.
Result<InterceptorSpec> parse_interceptor_spec(std::string_view text);

class Interceptor final : public MulticastTransport {
  public:
    static constexpr unsigned kMaxDelay = 64;
    // A delayed datagram is delivered after this time even if no later datagrams arrive.
    static constexpr Nanoseconds kMaxHold = Nanoseconds::from_ms(5);

    Interceptor(std::unique_ptr<MulticastTransport> inner, const InterceptorSpec& spec);

    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override {
        return inner_->send(datagrams, to);
    }
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    Nanoseconds next_deadline() const override;
    int descriptor() const override { return inner_->descriptor(); }
    bool prepare_wait() override { return inner_->prepare_wait(); }
    std::size_t max_payload() const override { return inner_->max_payload(); }
    MulticastCounters counters() const override { return inner_->counters(); }

  private:
    struct Held {
        // The datagram is delivered when arrived_ reaches this value.
        std::uint64_t release_at = 0;
        Nanoseconds deadline;
        SocketAddress source;
        std::size_t size = 0;
        std::vector<std::byte> bytes;
    };

    bool happens(double percent);
    bool is_lost();
    void intercept(Nanoseconds now, MutableBytes bytes, const SocketAddress& source, DeliverDatagram deliver);
    void pass_or_hold(Nanoseconds now, MutableBytes bytes, const SocketAddress& source,
                      DeliverDatagram deliver);
    void release_due(Nanoseconds now, DeliverDatagram deliver);

    std::unique_ptr<MulticastTransport> inner_;
    InterceptorSpec spec_;
    std::mt19937_64 generator_;
    bool losing_ = false;
    std::uint64_t arrived_ = 0;
    std::vector<std::byte> scratch_;
    // The first held_now_ slots are in use, in order of arrival. Each datagram is delivered at its own time.
    std::vector<Held> held_;
    std::size_t held_now_ = 0;
};

}  // namespace mcastcoll::transport
