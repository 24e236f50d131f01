// Interceptor: stands between a transport and its user and spoils what is received, so that tests, and users
// who want to see what repair costs them, get a bad network on a good one. Randomness is injected and seeded:
// the same datagrams meet the same fate in every run.
//
// It owns the transport underneath. Everything it holds back lies in slots allocated at the start.
#pragma once

#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "transport/multicast_transport.h"

namespace mcastcoll {

struct InterceptorSpec {
    double loss_percent = 0;  // of all datagrams, in the long run
    // Chance that a lost datagram is followed by another lost one (Gilbert's model).
    double burst_percent = 0;
    double duplicate_percent = 0;  // delivered twice
    double corrupt_percent = 0;    // one byte changed
    unsigned nth = 0;              // every nth datagram is lost, besides; 0 is none
    unsigned delay = 0;            // each datagram waits for 0 to this many later ones, which reorders them
    std::uint64_t seed = 1;

    bool spoils() const {
        return loss_percent > 0 || duplicate_percent > 0 || corrupt_percent > 0 || nth > 0 || delay > 0;
    }
};

// "loss=5,burst=20,nth=0,duplicate=1,corrupt=1,delay=3,seed=7": any of them, in any order; empty spoils
// nothing. "loss=5,burst_length=4" says the same as "loss=5,burst=75", with the mean length of a burst.
Result<InterceptorSpec> parse_interceptor_spec(std::string_view text);

class Interceptor final : public MulticastTransport {
  public:
    static constexpr unsigned kMaxDelay = 64;
    // A datagram that waits for later ones that never come is let go after this.
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
        std::uint64_t release_at = 0;  // when so many datagrams have arrived
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
    // The first so many are used, in the order of holding, which they are released in.
    std::vector<Held> held_;
    std::size_t held_now_ = 0;
};

}  // namespace mcastcoll
