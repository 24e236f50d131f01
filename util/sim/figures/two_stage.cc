// The figures of the two-stage broadcast: Hoefler, Siebert and Rehm, "A practically constant-time MPI
// Broadcast Algorithm for large-scale InfiniBand Clusters with Multicast" (CAC 2007).
#include <fmt/format.h>

#include <memory>

#include "trial.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kPaperRanks = 116;

std::uint32_t operations(const FigureOptions& options) {
    return options.quick ? 5 : 25;
}

std::vector<std::uint32_t> sizes(const FigureOptions& options) {
    std::vector<std::uint32_t> sizes;
    const std::uint32_t most = options.quick ? 64 : 2048;
    for (std::uint32_t ranks = 2; ranks <= most; ranks *= 2) {
        sizes.push_back(ranks);
        if (ranks == 64 && most > 64) sizes.push_back(kPaperRanks);
    }
    return sizes;
}

// A row for every number of ranks: of each policy what `sooner` says, and the last rank.
void fill(Figure& figure, const FigureOptions& options, const std::vector<Policy>& policies,
          Nanoseconds (Measured::*sooner)() const) {
    for (const std::uint32_t ranks : sizes(options)) {
        std::vector<double> row{static_cast<double>(ranks)};
        for (const Policy& policy : policies) {
            const Measured outcome = run_trial(options, fmt::format("{} ranks, {}", ranks, name_of(policy)),
                                               trial_for(options, policy, ranks, operations(options)));
            row.push_back(in_us((outcome.*sooner)()));
            row.push_back(in_us(outcome.last()));
        }
        figure.rows.push_back(std::move(row));
    }
}

}  // namespace

Figure figure_size(const FigureOptions& options) {
    Figure figure;
    figure.title = "8-byte broadcast against the number of ranks";
    figure.x = {"ranks", 2};
    figure.y = {"microseconds", 0};
    figure.columns = {"ranks",        "binomial_median_us", "binomial_last_us", "push_median_us",
                      "push_last_us", "pull_median_us",     "pull_last_us"};
    figure.curves = {{2, "binomial tree, last rank"}, {1, "binomial tree, median"},
                     {4, "push, last rank"},          {3, "push, median"},
                     {6, "pull, last rank"},          {5, "pull, median"}};
    fill(figure, options, {kBinomial, engine::Repair::push, engine::Repair::pull},
         &Measured::median_received);
    return figure;
}

Figure figure_ranks(const FigureOptions& options) {
    Figure figure;
    const std::uint32_t ranks = options.quick ? 16 : kPaperRanks;
    figure.title = fmt::format("8-byte broadcast to {} ranks, rank by rank", ranks);
    figure.x = {"rank", 0};
    figure.y = {"microseconds", 0};
    figure.columns = {"rank", "binomial_us", "push_us", "push_1_percent_us", "pull_1_percent_us"};
    figure.curves = {
        {1, "binomial tree", true}, {2, "push"}, {3, "push, 1 % lost", true}, {4, "pull, 1 % lost", true}};
    figure.remarks = {
        "with 1 % lost: one broadcast, the one whose last rank is the median of all of them; "
        "otherwise medians over the broadcasts",
        "rank 0 is the root"};
    std::vector<std::vector<Nanoseconds>> columns;
    for (const Policy& policy : {kBinomial, Policy(engine::Repair::push)})
        columns.push_back(run_trial(options, std::string(name_of(policy)),
                                    trial_for(options, policy, ranks, operations(options)))
                              .by_rank());
    for (const auto policy : {engine::Repair::push, engine::Repair::pull}) {
        Experiment trial = trial_for(options, policy, ranks, operations(options));
        trial.faults.loss = 0.01;
        const Measured outcome =
            run_trial(options, fmt::format("{} with loss", engine::name_of(policy)), trial);
        const Nanoseconds typical = outcome.last();
        for (const auto& times : outcome.times)
            if (*std::max_element(times.begin(), times.end()) == typical) {
                columns.push_back(times);
                break;
            }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<double> row{static_cast<double>(rank)};
        for (const auto& column : columns) row.push_back(in_us(column[rank]));
        figure.rows.push_back(std::move(row));
    }
    return figure;
}

Figure figure_first_last(const FigureOptions& options) {
    Figure figure;
    figure.title = "8-byte broadcast: first and last receiver against the number of ranks";
    figure.x = {"ranks", 2};
    figure.y = {"microseconds", 0};
    figure.columns = {"ranks", "binomial_first_us", "binomial_last_us", "push_first_us", "push_last_us"};
    figure.curves = {
        {2, "binomial tree, last"}, {1, "binomial tree, first"}, {4, "push, last"}, {3, "push, first"}};
    fill(figure, options, {kBinomial, engine::Repair::push}, &Measured::first);
    return figure;
}

namespace {

// Counts penalty rounds by looking at the wires: who gets a broadcast by multicast has waited none; who gets
// it from its ring predecessor one more than that one.
class Hops {
  public:
    Hops(std::uint32_t ranks, double loss, std::uint64_t seed, std::uint64_t warm_up)
        : loss_(loss), random_(seed), warm_up_(warm_up), rounds_(ranks), operation_of_(ranks, UINT64_MAX) {}

    // Called once for each copy of a multicast; the join is spared.
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
        if (operation_of_[receiver] == operation) return;  // had it already
        const std::uint32_t supplier = index_of(header.sender);
        const bool known = operation_of_[supplier] == operation;  // the root has no entry
        set(receiver, operation, known ? rounds_[supplier] + 1 : 1);
    }
    double average() const {
        return receivers_ == 0 ? 0 : static_cast<double>(total_) / static_cast<double>(receivers_);
    }
    std::uint32_t most() const { return most_; }

  private:
    void set(std::uint32_t receiver, std::uint64_t operation, std::uint32_t rounds) {
        operation_of_[receiver] = operation;
        rounds_[receiver] = rounds;
        if (operation < warm_up_) return;
        ++receivers_;
        total_ += rounds;
        most_ = std::max(most_, rounds);
    }

    const double loss_;
    Random random_;
    const std::uint64_t warm_up_;
    std::vector<std::uint32_t> rounds_;
    std::vector<std::uint64_t> operation_of_;
    std::uint64_t receivers_ = 0, total_ = 0;
    std::uint32_t most_ = 0;
};

}  // namespace

Figure figure_penalty(const FigureOptions& options) {
    Figure figure;
    const std::uint32_t ranks = options.quick ? 32 : kPaperRanks;
    figure.title = fmt::format("penalty rounds along the ring, push, {} ranks", ranks);
    figure.x = {"datagrams lost, %", 0};
    figure.y = {"penalty rounds per receiver", 0};
    figure.columns = {"loss_percent", "measured_rounds", "formula_rounds",
                      "most_rounds",  "median_us",       "last_us"};
    figure.curves = {{1, "measured", true}, {2, "p / (1 - p)"}};
    figure.remarks = {
        "rounds: hops from the nearest ring predecessor that heard the multicast, counted from "
        "the messages between engines",
        "loss strikes broadcasts, not the join"};
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
        const Measured outcome = run_trial(options, fmt::format("{} % lost", percent), trial);
        figure.rows.push_back({static_cast<double>(percent), hops.average(), loss / (1 - loss),
                               static_cast<double>(hops.most()), in_us(outcome.median_received()),
                               in_us(outcome.last())});
    }
    return figure;
}

}  // namespace mcastcoll::sim
