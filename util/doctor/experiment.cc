#include "experiment.h"

#include <poll.h>
#include <string.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "wire/bytes.h"

namespace mcastcoll::doctor {
namespace {

// key, sender, phase, number
constexpr std::size_t kHeader = 8 + 4 + 1 + 4;
constexpr std::size_t kSmall = 64;
constexpr std::uint64_t kGentle = 50;  // datagrams, a few milliseconds apart
constexpr std::int64_t kGentlePause_ns = 2'000'000;
constexpr std::uint64_t kFast_ns = 100'000'000;  // duration at each rate
constexpr std::uint64_t kBursts = 4;
constexpr std::uint64_t kMaxBurst = 1024;
constexpr std::int64_t kBurstPause_ns = 20'000'000;
constexpr unsigned kManyHosts = 32;  // with more hosts, a turn is shorter
constexpr int kDrain_ms = 100;       // wait for datagrams in flight after the last turn

void sleep_until(std::int64_t time_ns) {
    const timespec at{time_ns / 1'000'000'000, time_ns % 1'000'000'000};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
}

}  // namespace

std::vector<PhaseLoad> loads_of_turn(std::size_t datagram_bytes, std::uint64_t window, std::uint64_t top_mbit,
                                     unsigned hosts) {
    const auto at_rate = [&](Phase phase, std::uint64_t mbit) {
        mbit = std::max<std::uint64_t>(mbit, 1);
        const std::uint64_t time = hosts > kManyHosts ? kFast_ns * kManyHosts / hosts : kFast_ns;
        const std::uint64_t count = mbit * time / 1000 / 8 / std::max<std::size_t>(datagram_bytes, 1);
        return PhaseLoad{phase, std::clamp<std::uint64_t>(count, 10, Tally::kMax), datagram_bytes, mbit};
    };
    const std::uint64_t burst = std::clamp<std::uint64_t>(window, 1, kMaxBurst);
    return {{Phase::small, kGentle, kSmall},     {Phase::full, kGentle, datagram_bytes},
            at_rate(Phase::slow, top_mbit / 16), at_rate(Phase::medium, top_mbit / 4),
            at_rate(Phase::fast, top_mbit),      {Phase::burst, burst * kBursts, datagram_bytes, 0, burst}};
}

std::vector<PhaseLoad> repeated_loads() {
    return {{Phase::again, kGentle, kSmall}};
}

Experiment::Experiment(const transport::SocketAddress& group, std::uint64_t key, unsigned self,
                       unsigned members)
    : group_(group), key_(key), self_(self), members_(members) {}

Result<std::unique_ptr<Experiment>> Experiment::open(const transport::UdpMulticastOptions& options,
                                                     const transport::SocketAddress& group, std::uint64_t key,
                                                     unsigned self, unsigned members) {
    std::unique_ptr<Experiment> fresh(new Experiment(group, key, self, members));
    for (std::unique_ptr<transport::MulticastHub>* hub : {&fresh->sender_, &fresh->receiver_}) {
        auto opened = transport::MulticastHub::open(options);
        if (!opened) return opened.error();
        *hub = std::move(opened).value();
    }
    auto joined = fresh->receiver_->join(group);
    if (!joined) return joined.error();
    fresh->membership_ = std::move(joined).value();
    fresh->thread_ = std::thread([self = fresh.get()] { self->listen(); });
    return fresh;
}

Experiment::~Experiment() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
}

void Experiment::listen() {
    const auto deliver = [this](Bytes bytes, const transport::SocketAddress&) { take(bytes); };
    while (!ended_) {
        pollfd ready{receiver_->descriptor(), POLLIN, 0};
        ::poll(&ready, 1, 20);
        while (receiver_->receive(monotonic_now(), deliver) > 0) {
        }
    }
}

void Experiment::take(Bytes bytes) {
    if (bytes.size() < kHeader || wire::get<std::uint64_t>(bytes.data()) != key_) return;
    const auto from = wire::get<std::uint32_t>(bytes.data() + 8);
    const auto phase = std::to_integer<unsigned>(bytes[12]);
    if (from >= members_ || phase >= kPhases) return;
    tallies_[{from, static_cast<Phase>(phase)}].take(wire::get<std::uint32_t>(bytes.data() + 13));
}

std::vector<Stream> Experiment::send(const std::vector<PhaseLoad>& loads, bool loop) {
    std::vector<Stream> streams;
    for (const PhaseLoad& load : loads) streams.push_back(send(load, loop));
    return streams;
}

Stream Experiment::send(const PhaseLoad& load, bool loop) {
    constexpr std::size_t kBatch = transport::MulticastTransport::kBatch;
    Stream stream{load.phase, 0, load.bytes, 0, ""};
    std::vector<std::array<std::byte, kHeader>> headers(kBatch);
    const std::vector<std::byte> payload(std::max(load.bytes, kHeader) - kHeader);
    std::vector<transport::Datagram> datagrams(kBatch);
    const std::int64_t begun = monotonic_now().value;
    std::int64_t due = begun;
    // Pauses between batches, to keep the rate; datagrams at the low rate are sent one by one.
    const std::uint64_t at_once = load.mbit != 0 ? kBatch : load.at_once;
    const std::int64_t pause_ns = load.mbit != 0
                                      ? static_cast<std::int64_t>(at_once * load.bytes * 8 * 1000 / load.mbit)
                                  : load.at_once == 1 ? kGentlePause_ns
                                                      : kBurstPause_ns;
    std::uint64_t in_row = 0;
    while (stream.datagrams < load.datagrams) {
        const std::size_t count =
            std::min({std::uint64_t{kBatch}, load.datagrams - stream.datagrams, at_once - in_row});
        for (std::size_t i = 0; i < count; ++i) {
            std::byte* const at = headers[i].data();
            wire::put(at, key_);
            wire::put(at + 8, std::uint32_t{self_});
            at[12] = static_cast<std::byte>(load.phase);
            wire::put(at + 13, static_cast<std::uint32_t>(stream.datagrams + i));
            datagrams[i] = {headers[i], payload};
        }
        const transport::Sent sent = sender_->send(std::span(datagrams).first(count), {group_, loop});
        stream.datagrams += sent.accepted;
        in_row += sent.accepted;
        if (sent.error != 0) {
            stream.error = ::strerror(sent.error);
            break;
        }
        if (sent.accepted < count) sleep_until(monotonic_now().value + 100'000);  // local send queue is full
        if (in_row < at_once) continue;
        in_row = 0;
        due = std::max(due + pause_ns, monotonic_now().value - kBurstPause_ns);
        sleep_until(due);
    }
    const std::int64_t took = std::max<std::int64_t>(monotonic_now().value - begun, 1);
    stream.mbit = stream.datagrams * load.bytes * 8 * 1000 / static_cast<std::uint64_t>(took);
    return stream;
}

std::vector<ReceivedStream> Experiment::received(const std::vector<std::vector<Stream>>& sent) {
    ::poll(nullptr, 0, kDrain_ms);
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    overflows_ = receiver_->counters().socket_drops;
    std::vector<ReceivedStream> all;
    for (unsigned from = 0; from < sent.size(); ++from)
        for (const Stream& stream : sent[from]) {
            const auto tally = tallies_.find({from, stream.phase});
            all.push_back((tally != tallies_.end() ? tally->second : Tally())
                              .result(from, stream.phase, stream.datagrams));
        }
    return all;
}

}  // namespace mcastcoll::doctor
