// The figures of the broadcast channels: Yu, Sur, Panda, Aulwes and Graham, "High Performance Broadcast
// Support in LA-MPI over Quadrics" (2005).
#include <fmt/format.h>

#include "figure.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kLaMpiRanks = 128;

std::vector<std::uint64_t> message_sizes(const FigureOptions& options, std::uint64_t max) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t bytes = 1; bytes <= max; bytes *= options.quick ? 64 : 4) sizes.push_back(bytes);
    return sizes;
}

std::vector<std::uint32_t> group_sizes(const FigureOptions& options) {
    return options.quick ? std::vector{8U, 16U} : std::vector{8U, 32U, kLaMpiRanks};
}

Figure latency(const FigureOptions& options) {
    Figure figure{.title = "broadcast channels against the binomial tree",
                  .x = {"bytes", 2},
                  .y = {"microseconds until the last rank has it", 10},
                  .columns = {"bytes"}};
    const Policy policies[] = {kBinomial, engine::Repair::sync};
    for (const std::uint32_t ranks : group_sizes(options))
        for (const Policy& policy : policies) {
            figure.curves.push_back(
                {figure.columns.size(), fmt::format("{}, {} ranks", name_of(policy), ranks)});
            figure.columns.push_back(fmt::format("{}_{}_us", name_of(policy), ranks));
        }
    for (const std::uint64_t bytes : message_sizes(options, 256 * 1024)) {
        std::vector<double>& row = figure.rows.emplace_back(1, static_cast<double>(bytes));
        for (const std::uint32_t ranks : group_sizes(options))
            for (const Policy& policy : policies) {
                const Experiment trial = trial_for(options, policy, ranks, options.quick ? 4 : 16, bytes);
                row.push_back(in_us(run_trial(options, trial).last()));
            }
    }
    return figure;
}

// Back to back: the cost of reliability shows between the broadcasts.
Figure cost(const FigureOptions& options) {
    const std::uint32_t ranks = options.quick ? 16 : kLaMpiRanks;
    Figure figure{.title = fmt::format("the cost of reliability, broadcasts back to back, {} ranks", ranks),
                  .x = {"bytes", 2},
                  .y = {"microseconds per broadcast", 10},
                  .columns = {"bytes", "unreliable_us", "sync_us", "pull_us", "push_us", "sync_percent"},
                  .curves = {{4, "push"}, {3, "pull"}, {2, "sync, 16 channels"}, {1, "nothing agreed on"}},
                  .remarks = {"unreliable: pull without agreements and, as nothing is lost, without a NAK",
                              "sync_percent: what sync takes longer than that"}};
    for (const std::uint64_t bytes : message_sizes(options, 64 * 1024)) {
        std::vector<double>& row = figure.rows.emplace_back(1, static_cast<double>(bytes));
        for (const Policy& policy : {Policy(), Policy(engine::Repair::sync), Policy(engine::Repair::pull),
                                     Policy(engine::Repair::push)}) {
            Experiment trial = trial_for(options, policy.value_or(engine::Repair::pull), ranks,
                                         options.quick ? 32 : 112, bytes);
            trial.sustained = true;
            trial.checkpoints = policy.has_value();
            row.push_back(in_us(run_trial(options, trial).each));
        }
        row.push_back(100 * (row[2] / row[1] - 1));
    }
    return figure;
}

Figure count(const FigureOptions& options) {
    Figure figure{.title = "8-byte broadcasts back to back against the number of channels",
                  .x = {"channels", 2},
                  .y = {"microseconds per broadcast"},
                  .columns = {"channels"}};
    for (const std::uint32_t ranks : group_sizes(options)) {
        figure.curves.push_back({figure.columns.size(), fmt::format("{} ranks", ranks)});
        figure.columns.push_back(fmt::format("sync_{}_us", ranks));
    }
    for (std::uint32_t channels = 2; channels <= 32; channels *= 2) {
        std::vector<double>& row = figure.rows.emplace_back(1, static_cast<double>(channels));
        for (const std::uint32_t ranks : group_sizes(options)) {
            Experiment trial = trial_for(options, engine::Repair::sync, ranks, options.quick ? 64 : 512);
            trial.sustained = true;
            trial.channels = channels;
            row.push_back(in_us(run_trial(options, trial).each));
        }
    }
    return figure;
}

}  // namespace

std::vector<NamedFigure> channel_figures() {
    return {{"channels-latency", "broadcast channels against size, to 128 ranks", "quadrics-2005", latency},
            {"channels-cost", "what reliability costs against size", "quadrics-2005", cost},
            {"channels-count", "latency against the number of channels", "quadrics-2005", count}};
}

}  // namespace mcastcoll::sim
