// The figures of the broadcast channels: Yu, Sur, Panda, Aulwes and Graham, "High Performance Broadcast
// Support in LA-MPI over Quadrics" (2005).
#include <fmt/format.h>

#include "figure.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kLaMpiRanks = 128;

std::vector<std::uint64_t> message_sizes(const FigureOptions& options, std::uint64_t most) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t bytes = 1; bytes <= most; bytes *= options.quick ? 64 : 4) sizes.push_back(bytes);
    return sizes;
}

}  // namespace

Figure figure_channels_latency(const FigureOptions& options) {
    Figure figure;
    figure.title = "broadcast channels against the binomial tree";
    figure.x = {"bytes", 2};
    figure.y = {"microseconds until the last rank has it", 10};
    figure.columns = {"bytes"};
    std::vector<std::uint32_t> groups{8, 32, kLaMpiRanks};
    if (options.quick) groups = {8, 16};
    for (const std::uint32_t ranks : groups)
        for (const char* algorithm : {"binomial", "sync"}) {
            figure.columns.push_back(fmt::format("{}_{}_us", algorithm, ranks));
            figure.curves.push_back(
                {figure.columns.size() - 1, fmt::format("{}, {} ranks", algorithm, ranks)});
        }
    for (const std::uint64_t bytes : message_sizes(options, 256 * 1024)) {
        std::vector<double> row{static_cast<double>(bytes)};
        for (const std::uint32_t ranks : groups) {
            for (const Policy& policy : {kBinomial, Policy(engine::Repair::sync)})
                row.push_back(
                    in_us(run_trial(options, fmt::format("{} bytes, {} ranks", bytes, ranks),
                                    trial_for(options, policy, ranks, options.quick ? 4 : 16, bytes))
                              .last()));
        }
        figure.rows.push_back(std::move(row));
    }
    return figure;
}

// Back to back: what reliability costs shows between the broadcasts.
Figure figure_channels_cost(const FigureOptions& options) {
    Figure figure;
    const std::uint32_t ranks = options.quick ? 16 : kLaMpiRanks;
    figure.title = fmt::format("the cost of reliability, broadcasts back to back, {} ranks", ranks);
    figure.x = {"bytes", 2};
    figure.y = {"microseconds per broadcast", 10};
    figure.columns = {"bytes", "unreliable_us", "sync_us", "pull_us", "push_us", "sync_percent"};
    figure.curves = {{4, "push"}, {3, "pull"}, {2, "sync, 16 channels"}, {1, "nothing agreed on"}};
    figure.remarks = {"unreliable: pull without agreements and, as nothing is lost, without a question",
                      "sync_percent: what sync takes longer than that"};
    for (const std::uint64_t bytes : message_sizes(options, 64 * 1024)) {
        std::vector<double> row{static_cast<double>(bytes)};
        for (const Policy& policy : {Policy(), Policy(engine::Repair::sync), Policy(engine::Repair::pull),
                                     Policy(engine::Repair::push)}) {
            Experiment trial = trial_for(options, policy.value_or(engine::Repair::pull), ranks,
                                         options.quick ? 32 : 112, bytes);
            trial.sustained = true;
            trial.checkpoints = policy.has_value();
            const auto point = fmt::format("{} bytes, {}", bytes, policy ? name_of(policy) : "unreliable");
            row.push_back(in_us(run_trial(options, point, trial).each));
        }
        row.push_back(100 * (row[2] / row[1] - 1));
        figure.rows.push_back(std::move(row));
    }
    return figure;
}

Figure figure_channels_count(const FigureOptions& options) {
    Figure figure;
    figure.title = "8-byte broadcasts back to back against the number of channels";
    figure.x = {"channels", 2};
    figure.y = {"microseconds per broadcast", 0};
    figure.columns = {"channels"};
    std::vector<std::uint32_t> groups{8, 32, kLaMpiRanks};
    if (options.quick) groups = {8, 16};
    for (const std::uint32_t ranks : groups) {
        figure.columns.push_back(fmt::format("sync_{}_us", ranks));
        figure.curves.push_back({figure.columns.size() - 1, fmt::format("{} ranks", ranks)});
    }
    for (std::uint32_t channels = 2; channels <= 32; channels *= 2) {
        std::vector<double> row{static_cast<double>(channels)};
        for (const std::uint32_t ranks : groups) {
            Experiment trial = trial_for(options, engine::Repair::sync, ranks, options.quick ? 64 : 512);
            trial.sustained = true;
            trial.channels = channels;
            const auto point = fmt::format("{} channels, {} ranks", channels, ranks);
            row.push_back(in_us(run_trial(options, point, trial).each));
        }
        figure.rows.push_back(std::move(row));
    }
    return figure;
}

}  // namespace mcastcoll::sim
