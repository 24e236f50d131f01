// The figures of the two-stage broadcast: Hoefler, Siebert and Rehm, "A practically constant-time MPI
// Broadcast Algorithm for large-scale InfiniBand Clusters with Multicast" (CAC 2007).
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <unordered_set>

#include "figure.h"
#include "transport/socket_address.h"
#include "wire/bytes.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kHoeflerRanks = 116;

std::uint32_t operations(const FigureOptions& options) {
    return options.quick ? 5 : 25;
}

std::vector<std::uint32_t> sizes(const FigureOptions& options) {
    std::vector<std::uint32_t> sizes;
    const std::uint32_t max = options.quick ? 64 : 2048;
    for (std::uint32_t ranks = 2; ranks <= max; ranks *= 2) {
        sizes.push_back(ranks);
        if (ranks == 64 && max > 64) sizes.push_back(kHoeflerRanks);
    }
    return sizes;
}

// A row for every number of ranks: for each policy the value of `sooner`, and the last rank.
void fill(Figure& figure, const FigureOptions& options, const std::vector<Policy>& policies,
          Nanoseconds (Measured::*sooner)() const) {
    for (const std::uint32_t ranks : sizes(options)) {
        std::vector<double>& row = figure.rows.emplace_back(1, static_cast<double>(ranks));
        for (const Policy& policy : policies) {
            const Measured outcome =
                run_trial(options, trial_for(options, policy, ranks, operations(options)));
            row.push_back(in_us((outcome.*sooner)()));
            row.push_back(in_us(outcome.last()));
        }
    }
}

Figure figure_size(const FigureOptions& options) {
    Figure figure{.title = "8-byte broadcast against the number of ranks",
                  .x = {"ranks", 2},
                  .y = {"microseconds"},
                  .columns = {"ranks", "binomial_median_us", "binomial_last_us", "push_median_us",
                              "push_last_us", "pull_median_us", "pull_last_us"},
                  .curves = {{2, "binomial tree, last rank"},
                             {1, "binomial tree, median"},
                             {4, "push, last rank"},
                             {3, "push, median"},
                             {6, "pull, last rank"},
                             {5, "pull, median"}}};
    fill(figure, options, {kBinomial, engine::Repair::push, engine::Repair::pull},
         &Measured::median_received);
    return figure;
}

Figure figure_ranks(const FigureOptions& options) {
    const std::uint32_t ranks = options.quick ? 16 : kHoeflerRanks;
    Figure figure{
        .title = fmt::format("8-byte broadcast to {} ranks, rank by rank", ranks),
        .x = {"rank"},
        .y = {"microseconds"},
        .columns = {"rank", "binomial_us", "push_us", "push_1_percent_us", "pull_1_percent_us"},
        .curves = {{1, "binomial tree", true},
                   {2, "push"},
                   {3, "push, 1 % lost", true},
                   {4, "pull, 1 % lost", true}},
        .remarks = {"with 1 % lost: one broadcast, the one whose last rank is the median of all of them; "
                    "otherwise medians over the broadcasts",
                    "rank 0 is the root"}};
    std::vector<std::vector<Nanoseconds>> columns;
    for (const Policy& policy : {kBinomial, Policy(engine::Repair::push)})
        columns.push_back(
            run_trial(options, trial_for(options, policy, ranks, operations(options))).by_rank());
    for (const auto policy : {engine::Repair::push, engine::Repair::pull}) {
        Experiment trial = trial_for(options, policy, ranks, operations(options));
        trial.faults.loss = 0.01;
        const Measured outcome = run_trial(options, trial);
        columns.push_back(*std::ranges::find_if(outcome.times, [&](const Measured::Times& times) {
            return std::ranges::max(times) == outcome.last();
        }));
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<double>& row = figure.rows.emplace_back(1, static_cast<double>(rank));
        for (const auto& column : columns) row.push_back(in_us(column[rank]));
    }
    return figure;
}

Figure figure_first_last(const FigureOptions& options) {
    Figure figure{
        .title = "8-byte broadcast: first and last receiver against the number of ranks",
        .x = {"ranks", 2},
        .y = {"microseconds"},
        .columns = {"ranks", "binomial_first_us", "binomial_last_us", "push_first_us", "push_last_us"},
        .curves = {
            {2, "binomial tree, last"}, {1, "binomial tree, first"}, {4, "push, last"}, {3, "push, first"}}};
    fill(figure, options, {kBinomial, engine::Repair::push}, &Measured::first);
    return figure;
}

// Counts penalty rounds by observing packets: a rank that receives the multicast has waited zero rounds; a
// rank served by its ring predecessor has waited one round more than the predecessor.
class Hops {
  public:
    Hops(std::uint32_t ranks, double loss, std::uint64_t seed, std::uint64_t warm_up)
        : loss_(loss), random_(seed), warm_up_(warm_up), rounds_(ranks), operation_of_(ranks, UINT64_MAX) {}

    // Called once for each copy of a multicast; packets of the join are not dropped.
    bool drops(const wire::Header& header, std::uint32_t receiver) {
        if (header.kind != wire::Kind::fragment) return false;
        const std::uint64_t operation = number_of(header.operation);
        const bool lost = random_.chance(loss_);
        if (!lost) set(receiver, operation, 0);
        return lost;
    }
    void sees(const wire::Header& header, std::uint32_t receiver) {
        if (header.kind != wire::Kind::data) return;
        const std::uint64_t operation = number_of(header.operation);
        if (operation_of_[receiver] == operation) return;  // already present
        const std::uint32_t supplier = index_of(header.sender);
        const bool known = operation_of_[supplier] == operation;  // the root has no entry
        set(receiver, operation, known ? rounds_[supplier] + 1 : 1);
    }
    double average() const {
        return receivers_ == 0 ? 0 : static_cast<double>(total_) / static_cast<double>(receivers_);
    }
    std::uint32_t max() const { return max_; }

  private:
    void set(std::uint32_t receiver, std::uint64_t operation, std::uint32_t rounds) {
        operation_of_[receiver] = operation;
        rounds_[receiver] = rounds;
        if (operation < warm_up_) return;
        ++receivers_;
        total_ += rounds;
        max_ = std::max(max_, rounds);
    }

    const double loss_;
    Random random_;
    const std::uint64_t warm_up_;
    std::vector<std::uint32_t> rounds_;
    std::vector<std::uint64_t> operation_of_;
    std::uint64_t receivers_ = 0, total_ = 0;
    std::uint32_t max_ = 0;
};

Figure figure_penalty(const FigureOptions& options) {
    const std::uint32_t ranks = options.quick ? 32 : kHoeflerRanks;
    Figure figure{.title = fmt::format("penalty rounds along the ring, push, {} ranks", ranks),
                  .x = {"datagrams lost, %"},
                  .y = {"penalty rounds per receiver"},
                  .columns = {"loss_percent", "measured_rounds", "formula_rounds", "most_rounds", "median_us",
                              "last_us"},
                  .curves = {{1, "measured", true}, {2, "p / (1 - p)"}},
                  .remarks = {"rounds: hops from the nearest ring predecessor that received the multicast, "
                              "counted from the messages between engines",
                              "loss strikes broadcasts, not the join"}};
    for (int percent = 0; percent <= 60; percent += options.quick ? 25 : 5) {
        Experiment trial = trial_for(options, engine::Repair::push, ranks, options.quick ? 20 : 100);
        const double loss = percent / 100.0;
        Hops hops(ranks, loss, options.seed + static_cast<std::uint64_t>(percent), trial.warm_up);
        trial.faults.drop = [&](const wire::Header& header, Rank receiver) {
            return hops.drops(header, index_of(receiver));
        };
        trial.faults.lose_message = [&](const wire::Header& header, Rank receiver) {
            hops.sees(header, index_of(receiver));
            return false;
        };
        const Measured outcome = run_trial(options, trial);
        figure.rows.push_back({static_cast<double>(percent), hops.average(), loss / (1 - loss),
                               static_cast<double>(hops.max()), in_us(outcome.median_received()),
                               in_us(outcome.last())});
    }
    return figure;
}

// How many damaged packets each checksum accepts. Real packets are damaged in every way, from a few bytes to
// the whole payload. A good checksum of k bits misses one packet in 2^k.
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
        const std::uint64_t bytes = 5 + random.below(28);  // CRC-32 detects any change of up to 4 bytes
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

// Injects damage around the rate reported in the paper, and counts the reactions of checksum and engines; any
// wrong byte in a buffer would end the run.
Figure figure_crc(const FigureOptions& options) {
    const std::uint32_t ranks = options.quick ? 16 : kHoeflerRanks;
    Figure figure{
        .title = fmt::format("damaged datagrams, {} ranks, broadcasts of 1 KiB", ranks),
        .x = {"copies damaged, %", 10},
        .y = {"copies refused by the checksum, %", 10},
        .columns = {"injected_percent", "refused_percent", "copies", "expected_undetected", "median_us",
                    "last_us"},
        .curves = {{0, "injected"}, {1, "refused", true}},
        .remarks = {"nothing damaged reached a buffer; expected_undetected: damaged copies / 2^32"}};
    Random random(options.seed);
    const Missed missed = damage_packets(options.quick ? 100'000 : 4'000'000, random);
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
        const Measured outcome = run_trial(options, trial);
        const auto refused = static_cast<double>(outcome.counters.bad_checksum + outcome.counters.bad_packet);
        const double copies = refused + static_cast<double>(outcome.counters.datagrams_received);
        figure.rows.push_back({percent, 100 * refused / copies, copies, refused * 0x1p-32,
                               in_us(outcome.median_received()), in_us(outcome.last())});
    }
    return figure;
}

// The probability that any two of `groups` share one of `choices`.
double birthday(double groups, double choices) {
    return -std::expm1(-groups * (groups - 1) / 2 / choices);
}

// The share of `rounds` in which two of `groups` addresses drawn by the provider's own rule were equal.
double drawn(std::uint32_t groups, std::uint32_t rounds, Random& random) {
    std::uint32_t shared = 0;
    std::unordered_set<std::uint32_t> seen;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        seen.clear();
        for (std::uint32_t group = 0; group < groups; ++group) {
            std::array<std::byte, transport::kGroupRandomBytes> bytes;
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() >> 32);
            const transport::SocketAddress address = transport::random_group_address(4, bytes);
            if (!seen.insert(wire::get<std::uint32_t>(address.address_bytes().data())).second) {
                ++shared;
                break;
            }
        }
    }
    return static_cast<double>(shared) / rounds;
}

Figure figure_collisions(const FigureOptions& options) {
    constexpr double kAddresses = 0x1p24, kPorts = 12768;
    Figure figure{.title = "odds that any two groups share an address",
                  .x = {"groups", 10},
                  .y = {"odds", 10},
                  .columns = {"groups", "drawn_ipv4_fixed_port", "ipv4_fixed_port", "ipv4", "112_bits"},
                  .curves = {{1, "IPv4, fixed port, drawn", true},
                             {2, "IPv4, fixed port"},
                             {3, "IPv4 and random port"},
                             {4, "112 random bits (IPv6, InfiniBand)"}},
                  .remarks = {"drawn with the provider's own rule; too rare to be drawn in the other columns",
                              "the others: 1 - exp(-g (g - 1) / 2 / choices)"}};
    Random random(options.seed);
    for (const std::uint32_t groups : {1U, 2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U}) {
        options.begin(fmt::format("{} groups", groups));
        const std::uint32_t rounds = (options.quick ? 200'000U : 5'000'000U) / groups;
        figure.rows.push_back({static_cast<double>(groups), drawn(groups, rounds, random),
                               birthday(groups, kAddresses), birthday(groups, kAddresses * kPorts),
                               birthday(groups, 0x1p112)});
    }
    return figure;
}

}  // namespace

std::vector<NamedFigure> two_stage_figures() {
    constexpr const char* kNetwork = "infiniband-2007";
    return {
        {"size", "latency against the number of ranks, binomial tree and ours", kNetwork, figure_size},
        {"ranks", "completion rank by rank at 116 ranks", kNetwork, figure_ranks},
        {"first-last", "first and last receiver against the number of ranks", kNetwork, figure_first_last},
        {"penalty", "rounds along the ring against loss", kNetwork, figure_penalty},
        {"crc", "damaged datagrams, and what the checksum finds", kNetwork, figure_crc},
        {"collisions", "odds that groups share an address", nullptr, figure_collisions}};
}

}  // namespace mcastcoll::sim
