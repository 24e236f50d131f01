// Two figures about odds: damaged packets, and groups that share an address.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "transport/socket_address.h"
#include "trial.h"
#include "wire/bytes.h"
#include "wire/packet.h"

namespace mcastcoll::sim {

namespace {

// Damages real packets in every way, a few bytes to all of the payload, and asks the checksum. Of a good
// checksum, k bits miss one in 2^k.
struct Missed {
    static constexpr unsigned kBits[] = {8, 12, 16, 32};
    std::uint64_t tried = 0;
    std::array<std::uint64_t, std::size(kBits)> missed{};
};

Missed damage_packets(std::uint64_t count, Random& random) {
    std::vector<std::byte> sound(1024), damaged;
    for (std::byte& byte : sound) byte = static_cast<std::byte>(random.next() >> 56);
    wire::HeaderBytes before, after;
    wire::Header header;
    header.payload_bytes = static_cast<std::uint32_t>(sound.size());
    header.total = sound.size();
    wire::encode(header, sound, before);
    Missed result;
    for (; result.tried < count; ++result.tried) {
        damaged = sound;
        const std::uint64_t bytes = 5 + random.below(28);  // CRC-32 finds all that 4 can hold
        const std::uint64_t at = random.below(damaged.size() - bytes);
        for (std::uint64_t i = 0; i < bytes; ++i)
            damaged[at + i] = static_cast<std::byte>(random.next() >> 56);
        if (damaged == sound) continue;
        wire::encode(header, damaged, after);
        const auto differs = wire::get<std::uint32_t>(before.data() + wire::kCrcOffset) ^
                             wire::get<std::uint32_t>(after.data() + wire::kCrcOffset);
        for (std::size_t i = 0; i < result.missed.size(); ++i)
            result.missed[i] += (std::uint64_t{differs} << (64 - Missed::kBits[i])) == 0;
    }
    return result;
}

}  // namespace

// Damage is injected around the rate that the paper reports, and what the checksum and the engines make of it
// is counted; any wrong byte in a buffer would end the run.
Figure figure_crc(const FigureOptions& options) {
    Figure figure;
    const std::uint32_t ranks = options.quick ? 16 : 116;
    figure.title = fmt::format("damaged datagrams, {} ranks, broadcasts of 1 KiB", ranks);
    figure.x = {"copies damaged, %", 10};
    figure.y = {"copies refused by the checksum, %", 10};
    figure.columns = {"injected_percent",    "refused_percent", "copies",
                      "expected_undetected", "median_us",       "last_us"};
    figure.curves = {{0, "injected"}, {1, "refused", true}};
    Random random(options.seed);
    const Missed missed = damage_packets(options.quick ? 100'000 : 4'000'000, random);
    figure.remarks = {"nothing damaged reached a buffer; expected_undetected: damaged copies / 2^32"};
    for (std::size_t i = 0; i < missed.missed.size(); ++i)
        figure.remarks.push_back(
            fmt::format("of {} packets with 5 to 32 wrong bytes, {} bits of the CRC-32C "
                        "miss {} (expected {:.3g})",
                        missed.tried, Missed::kBits[i], missed.missed[i],
                        std::ldexp(static_cast<double>(missed.tried), -static_cast<int>(Missed::kBits[i]))));
    for (const double percent : {0.01, 0.03, 0.1, 0.287, 1.0, 3.0, 10.0}) {
        if (options.quick && percent < 0.2) continue;
        Experiment trial = trial_for(options, engine::Repair::push, ranks, options.quick ? 100 : 800, 1024);
        trial.faults.corrupt = percent / 100;
        const Measured outcome = run_trial(options, fmt::format("{} % damaged", percent), trial);
        const auto refused = static_cast<double>(outcome.counters.bad_checksum + outcome.counters.bad_packet);
        const double copies = refused + static_cast<double>(outcome.counters.datagrams_received);
        figure.rows.push_back({percent, 100 * refused / copies, copies, refused * 0x1p-32,
                               in_us(outcome.median_received()), in_us(outcome.last())});
    }
    return figure;
}

namespace {

// The odds that any two of `groups` share one of `choices`.
double birthday(double groups, double choices) {
    return -std::expm1(-groups * (groups - 1) / 2 / choices);
}

// The share of `rounds` in which two of `groups` addresses of the provider's own rule were the same.
double drawn(std::uint32_t groups, std::uint32_t rounds, Random& random) {
    std::uint32_t shared = 0;
    std::unordered_set<std::uint32_t> seen;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        seen.clear();
        for (std::uint32_t group = 0; group < groups; ++group) {
            std::array<std::byte, kGroupRandomBytes> bytes;
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() >> 32);
            const SocketAddress address = random_group_address(4, bytes);
            if (!seen.insert(wire::get<std::uint32_t>(address.address_bytes().data())).second) {
                ++shared;
                break;
            }
        }
    }
    return static_cast<double>(shared) / rounds;
}

}  // namespace

Figure figure_collisions(const FigureOptions& options) {
    constexpr double kAddresses = 0x1p24, kPorts = 12768;
    Figure figure;
    figure.title = "odds that any two groups share an address";
    figure.x = {"groups", 10};
    figure.y = {"odds", 10};
    figure.columns = {"groups", "drawn_ipv4_fixed_port", "ipv4_fixed_port", "ipv4", "112_bits"};
    figure.curves = {{1, "IPv4, fixed port, drawn", true},
                     {2, "IPv4, fixed port"},
                     {3, "IPv4 and random port"},
                     {4, "112 random bits (IPv6, InfiniBand)"}};
    figure.remarks = {"drawn with the provider's own rule; too rare to be drawn in the other columns",
                      "the others: 1 - exp(-g (g - 1) / 2 / choices)"};
    Random random(options.seed);
    for (const std::uint32_t groups : {1U, 2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U}) {
        if (options.progress) options.progress(fmt::format("{} groups", groups));
        const std::uint32_t rounds = (options.quick ? 200'000U : 5'000'000U) / groups;
        figure.rows.push_back({static_cast<double>(groups), drawn(groups, rounds, random),
                               birthday(groups, kAddresses), birthday(groups, kAddresses * kPorts),
                               birthday(groups, 0x1p112)});
    }
    return figure;
}

}  // namespace mcastcoll::sim
