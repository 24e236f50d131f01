// The interceptor, over a transport made of a list in memory: no socket, no clock, the same result every
// time.
#include <criterion/criterion.h>
#include <errno.h>
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "transport/interceptor.h"

using namespace mcastcoll;
using namespace mcastcoll::transport;

TestSuite(transport_interceptor, .timeout = 300);

namespace {

// Returns the sent datagrams, one batch per receive().
class Queue final : public MulticastTransport {
  public:
    Sent send(std::span<const Datagram> datagrams, const Outlet&) override {
        for (const Datagram& datagram : datagrams)
            waiting_.emplace_back(datagram.payload.begin(), datagram.payload.end());
        return {datagrams.size(), 0};
    }
    std::size_t receive(Nanoseconds, DeliverDatagram deliver) override {
        std::size_t count = 0;
        for (; count < kBatch && !waiting_.empty(); ++count) {
            deliver(waiting_.front(), address_);
            waiting_.pop_front();
        }
        return count;
    }
    int descriptor() const override { return -1; }
    std::size_t max_payload() const override { return 64; }
    MulticastCounters counters() const override { return {}; }

  private:
    std::deque<std::vector<std::byte>> waiting_;
    SocketAddress address_ = SocketAddress::parse("10.0.0.1:1").value();
};

struct Outcome {
    std::vector<std::string> received;
    std::size_t lost = 0;  // sent minus received: the number of lost datagrams if none is duplicated
};

InterceptorSpec spec_of(std::string_view text) {
    auto spec = parse_interceptor_spec(text);
    cr_assert(spec.ok(), "%s", spec.ok() ? "" : spec.error().message.c_str());
    return spec.value();
}

// Sends `count` numbered datagrams and advances the time until no datagram is delayed any more.
Outcome run(std::string_view text, int count) {
    Interceptor interceptor(std::make_unique<Queue>(), spec_of(text));
    Outcome outcome;
    const auto deliver = [&](Bytes bytes, const SocketAddress&) {
        outcome.received.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        const Datagram datagram{{}, std::as_bytes(std::span(number))};
        interceptor.send(std::span(&datagram, 1), Outlet{});
        interceptor.receive(Nanoseconds{0}, deliver);
    }
    if (interceptor.next_deadline() != kNever) {
        cr_assert_eq(interceptor.next_deadline().value, Interceptor::kMaxHold.value);
        interceptor.receive(interceptor.next_deadline(), deliver);
    }
    cr_assert(interceptor.next_deadline() == kNever, "nothing is held beyond its time");
    outcome.lost = static_cast<std::size_t>(count) - outcome.received.size();
    return outcome;
}

bool near(std::uint64_t value, double expected, double tolerance) {
    return static_cast<double>(value) > expected - tolerance &&
           static_cast<double>(value) < expected + tolerance;
}

}  // namespace

Test(transport_interceptor, an_empty_specification_changes_nothing) {
    const Outcome outcome = run("", 100);
    cr_assert_eq(outcome.received.size(), 100);
    for (std::size_t i = 0; i < 100; ++i) cr_assert_eq(outcome.received[i], std::to_string(i));
    cr_assert_not(spec_of("").spoils());
    cr_assert(spec_of("nth=3").spoils());
}

Test(transport_interceptor, the_seed_decides) {
    const auto run_with = [](int seed) {
        return run(fmt::format("loss=20,burst=50,duplicate=10,corrupt=10,delay=5,seed={}", seed), 2000);
    };
    const Outcome first = run_with(7);
    const Outcome again = run_with(7);
    const Outcome other = run_with(8);
    cr_assert(first.received == again.received);
    cr_assert(first.received != other.received);
}

Test(transport_interceptor, loses_as_much_as_requested) {
    cr_assert(near(run("loss=5,seed=3", 20000).lost, 1000, 200));
    cr_assert_eq(run("loss=0,burst=90", 1000).lost, 0);
    cr_assert_eq(run("loss=100", 1000).lost, 1000);
    cr_assert_eq(run("loss=100,burst=20", 1000).lost, 1000);
}

// The seeds are fixed and the generator is the standard's, so the expected figures never change.
Test(transport_interceptor, bursts_have_the_requested_share_and_length) {
    struct Case {
        const char* spec;
        double lost, length;
    };
    constexpr int kDatagrams = 200000;
    for (const Case& one :
         {Case{"loss=10,burst=80,seed=5", 0.10, 5}, Case{"loss=1,burst_length=5,seed=1", 0.01, 5},
          Case{"loss=5,burst_length=4,seed=2", 0.05, 4}, Case{"loss=20,burst_length=10,seed=3", 0.20, 10},
          Case{"loss=60,burst_length=3,seed=4", 0.60, 3}}) {
        const Outcome outcome = run(one.spec, kDatagrams);
        const auto lost = static_cast<double>(outcome.lost);
        int bursts = 0, previous = -1;
        for (const std::string& text : outcome.received) {
            const int number = std::stoi(text);
            bursts += number != previous + 1;
            previous = number;
        }
        bursts += previous != kDatagrams - 1;
        const double length = lost / bursts, share = lost / kDatagrams;
        cr_assert(share > one.lost * 0.75 && share < one.lost * 1.25, "%s: %f", one.spec, share);
        cr_assert(length > one.length * 0.75 && length < one.length * 1.25, "%s: %f", one.spec, length);
    }
}

Test(transport_interceptor, a_burst_is_given_by_its_mean_or_by_its_going_on) {
    cr_assert(run("loss=10,burst_length=4,seed=5", 5000).received ==
              run("loss=10,burst=75,seed=5", 5000).received);
    cr_assert(run("loss=10,burst_length=1,seed=5", 5000).received == run("loss=10,seed=5", 5000).received);
}

Test(transport_interceptor, every_nth_is_lost) {
    const Outcome outcome = run("nth=4", 12);
    const std::vector<std::string> expected{"0", "1", "2", "4", "5", "6", "8", "9", "10"};
    cr_assert(outcome.received == expected);
}

Test(transport_interceptor, duplicates_and_corrupts) {
    const Outcome twice = run("duplicate=100", 50);
    cr_assert_eq(twice.received.size(), 100);
    for (std::size_t i = 0; i < 100; ++i) cr_assert_eq(twice.received[i], std::to_string(i / 2));
    const Outcome spoilt = run("corrupt=100,seed=9", 500);
    cr_assert_eq(spoilt.received.size(), 500);
    for (std::size_t i = 0; i < 500; ++i) {
        const std::string original = std::to_string(i);
        cr_assert_eq(spoilt.received[i].size(), original.size());
        int different = 0;
        for (std::size_t at = 0; at < original.size(); ++at)
            different += spoilt.received[i][at] != original[at];
        cr_assert_eq(different, 1);
    }
}

Test(transport_interceptor, delay_reorders_within_its_bound) {
    constexpr int kDelay = 3;
    const Outcome outcome = run("delay=3,duplicate=50,seed=11", 1000);
    std::vector<bool> seen(1000, false);
    bool reordered = false;
    int newest = -1;
    for (const std::string& text : outcome.received) {
        const int number = std::stoi(text);
        reordered = reordered || number < newest;
        newest = std::max(newest, number);
        cr_assert_geq(number, newest - kDelay - 1);
        seen[static_cast<std::size_t>(number)] = true;
    }
    cr_assert(reordered);
    cr_assert(std::all_of(seen.begin(), seen.end(), [](bool one) { return one; }));
}

constexpr const char* kBad[] = {"loss",
                                "loss=",
                                "loss=x",
                                "loss=101",
                                "loss=-1",
                                "loss=nan",
                                "loss=5,",
                                ",loss=5",
                                "lost=5",
                                "delay=65",
                                "nth=-1",
                                "seed=1.5",
                                "loss=5;burst=3",
                                "loss=5 ",
                                "=5",
                                "burst_length=0.5",
                                "burst_length=",
                                "loss=60,burst=20",
                                "loss=60,burst_length=1.2",
                                "burst=20,loss=60"};

Test(transport_interceptor, bad_specifications_are_refused) {
    for (const char* bad : kBad) {
        auto spec = parse_interceptor_spec(bad);
        cr_assert_not(spec.ok(), "\"%s\"", bad);
        cr_assert_eq(spec.error().code, EINVAL);
        cr_assert_not(spec.error().message.empty());
    }
    const InterceptorSpec all =
        spec_of("loss=5.5,burst=20,duplicate=1,corrupt=2,delay=3,nth=9,seed=18446744073709551615");
    cr_assert(all.loss_percent == 5.5 && all.burst_percent == 20 && all.duplicate_percent == 1);
    cr_assert(all.corrupt_percent == 2 && all.delay == 3 && all.nth == 9 && all.seed == UINT64_MAX);
}
