// The cost of losses for the last rank, with and without redundant multicast datagrams.
#include <fmt/format.h>

#include "figure.h"

namespace mcastcoll::sim {
namespace {

constexpr double kLosses[] = {0, 0.1, 1, 2, 5, 10, 20};

struct What {
    const char* name;
    CollectiveKind kind;
    std::uint64_t bytes;
};
constexpr What kWhat[] = {{"bcast8", CollectiveKind::broadcast, 8},
                          {"bcast64k", CollectiveKind::broadcast, 65536},
                          {"barrier", CollectiveKind::barrier, 0},
                          {"allreduce8", CollectiveKind::allreduce, 8}};

// Fewer operations for larger groups and for long messages. The warm-up is long enough to measure losses and
// to distribute the result.
struct Steps {
    std::uint32_t warm_up, counted;
};
Steps steps_of(const FigureOptions& options, std::uint32_t ranks, std::uint64_t bytes) {
    if (options.quick) return {64, 100};
    if (ranks > 1024) return {16, 30};
    if (ranks > 256) return {32, 100};
    if (bytes > 8) return ranks > 16 ? Steps{64, 60} : Steps{128, 300};
    return ranks > 16 ? Steps{128, 200} : Steps{128, 1000};
}

Experiment trial(const FigureOptions& options, const What& what, std::uint32_t ranks, double percent,
                 engine::Redundancy redundancy) {
    const Steps steps = steps_of(options, ranks, what.bytes);
    Experiment experiment = trial_for(options, engine::Repair::pull, ranks, steps.counted, what.bytes);
    experiment.kind = what.kind;
    experiment.redundancy = redundancy;
    experiment.faults.loss = percent / 100;
    experiment.warm_up = steps.warm_up;
    return experiment;
}

// A row for every loss, group and collective: all of them with 8 and 16 ranks, short ones with larger groups.
Figure figure_redundancy(const FigureOptions& options) {
    Figure figure{
        .title = "the last rank against loss, with and without redundancy",
        .x = {"percent of the datagrams that each receiver loses"},
        .y = {"microseconds", 10},
        .columns = {"loss_percent"},
        .remarks = {
            "off, auto: FI_MCASTCOLL_EXPERIMENT=redundancy; the last rank of an operation, median and "
            "p99 over operations after some that are not counted; datagrams "
            "are what was multicast for an operation, the join's probes included"}};
    struct Column {
        const What* what;
        std::uint32_t ranks;
    };
    std::vector<Column> all;
    for (const What& what : kWhat)
        for (std::uint32_t ranks : {8U, 16U, 64U, 256U, 1024U, 4096U}) {
            const bool short_broadcast = what.kind == CollectiveKind::broadcast && what.bytes <= 8;
            if (ranks > (short_broadcast ? 4096U : what.bytes > 8 ? 64U : 16U)) continue;
            if (ranks > (options.quick ? 16U : options.largest)) continue;
            all.push_back({&what, ranks});
        }
    for (const Column& one : all)
        for (const char* mode : {"off", "auto"}) {
            const std::string name = fmt::format("{}_{}_{}", one.what->name, one.ranks, mode);
            if (one.what == kWhat && one.ranks == 16)
                for (const auto& [offset, title] : {std::pair{0, "median"}, {1, "p99"}})
                    figure.curves.push_back({figure.columns.size() + static_cast<std::size_t>(offset),
                                             fmt::format("8-byte broadcast, 16 ranks, {}, {}", mode, title)});
            if (one.what == kWhat + 1 && one.ranks == 16)
                figure.curves.push_back(
                    {figure.columns.size() + 1, fmt::format("64 KiB broadcast, 16 ranks, {}, p99", mode)});
            for (const char* part : {"median_us", "p99_us", "datagrams"})
                figure.columns.push_back(fmt::format("{}_{}", name, part));
        }
    for (const double percent : kLosses) {
        if (options.quick && percent != 0 && percent != 1 && percent != 5) continue;
        std::vector<double>& row = figure.rows.emplace_back(1, percent);
        for (const Column& one : all)
            for (const engine::Redundancy redundancy :
                 {engine::Redundancy::off, engine::Redundancy::automatic}) {
                const Experiment experiment = trial(options, *one.what, one.ranks, percent, redundancy);
                const Measured measured = run_trial(options, experiment);
                const double steps = experiment.warm_up + experiment.operations;
                row.insert(row.end(), {in_us(measured.last()), in_us(measured.last(0.99)),
                                       static_cast<double>(measured.counters.datagrams_sent) / steps});
            }
    }
    return figure;
}

}  // namespace

std::vector<NamedFigure> redundancy_figures() {
    return {{"redundancy", "what losses cost the last rank, with and without redundancy", "ethernet",
             figure_redundancy}};
}

}  // namespace mcastcoll::sim
