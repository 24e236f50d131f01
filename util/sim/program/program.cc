#include "program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "figures/figure.h"
#include "measure_groups.h"
#include "text.h"

namespace mcastcoll::sim {
namespace {

double per_operation(const Command& command, std::uint64_t count) {
    return static_cast<double>(count) / command.experiment.groups / command.experiment.operations;
}

nlohmann::ordered_json report_of(const Command& command, const Measured& measured) {
    const Experiment& experiment = command.experiment;
    return {{"ranks", experiment.ranks},
            {"size", experiment.bytes},
            {"loss", command.loss_percent},
            {"policy", command.policy},
            {"ops", experiment.operations},
            {"seed", experiment.seed},
            {"groups", experiment.groups},
            {"faults", to_string(experiment.faults)},
            {"median_ns", measured.quantile(0.5).value},
            {"p99_ns", measured.quantile(0.99).value},
            {"last_median_ns", measured.last().value},
            {"last_p99_ns", measured.last(0.99).value},
            {"rtt_ns", experiment.model.round_trip(wire::kHeaderBytes).value},  // of an empty message
            {"spread", measured.spread()},
            {"messages_per_op", per_operation(command, measured.traffic.messages)},
            {"datagrams_per_op", per_operation(command, measured.traffic.datagrams)},
            {"peak_bytes_per_member", measured.peak_bytes_per_member},
            {"simulated_ns", measured.duration.value},
            {"events", measured.events},
            {"failures", measured.failures},
            {"configuration", measured.configuration}};
}

// Prints the report as a JSON object, or as a line for each field.
void print(const Command& command, const nlohmann::ordered_json& report) {
    if (command.json) return fmt::print("{}\n", report.dump());
    for (const auto& [key, value] : report.items())
        fmt::print("{:<24} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
}

// Prints the error, if any, and returns the program's exit code.
int judge(const Command& command, std::uint64_t failures, const std::string& first_failure) {
    if (failures == 0) return 0;
    fmt::print(stderr, "mcastcoll-sim: {}\nreplay with: {}\n", first_failure, command.replay);
    return 1;
}

int run_measurement(Command& command) {
    const bool show_progress = isatty(STDERR_FILENO) != 0;
    if (show_progress)
        command.experiment.progress = [](Nanoseconds now, std::uint64_t events) {
            if (events % (1 << 20) == 0)
                fmt::print(stderr, "\r{:.3f} ms simulated, {} million events ",
                           static_cast<double>(now.value) / 1e6, events >> 20);
        };
    const Measured measured = measure(command.experiment);
    if (show_progress) fmt::print(stderr, "\r\033[K");
    print(command, report_of(command, measured));
    return judge(command, measured.failures, measured.first_failure);
}

nlohmann::ordered_json report_of(const Command& command, const GroupMeasured& measured) {
    const Experiment& experiment = command.experiment;
    nlohmann::ordered_json report{{"hosts", *command.hosts},       {"per_host", command.per_host},
                                  {"size", experiment.bytes},      {"loss", command.loss_percent},
                                  {"policy", command.policy},      {"ops", experiment.operations},
                                  {"seed", experiment.seed},       {"faults", to_string(experiment.faults)},
                                  {"join_ns", measured.join.value}};
    const auto share = [&](const std::string& name, const GroupMeasured::Share& of) {
        report[name + "_rank0"] = of.rank0;
        report[name + "_most"] = of.max;
        report[name + "_mean"] = of.mean;
    };
    share("join_messages", measured.join_messages);
    share("join_datagrams", measured.join_datagrams);
    share("join_bytes_sent", measured.join_bytes_sent);
    share("join_bytes_received", measured.join_bytes_received);
    share("peak_bytes", measured.peak_bytes);
    if (command.kill) {
        report["killed_rank"] = command.kill->rank;
        report["killed_in_operation"] = command.kill->operation;
        report["known_ns"] = measured.known.value;
    }
    for (const auto& [kind, times] : measured.operations) {
        if (times.times.empty()) continue;
        report[fmt::format("{}_median_ns", name_of(kind))] = times.quantile(0.5).value;
        report[fmt::format("{}_last_median_ns", name_of(kind))] = times.last().value;
    }
    report["leave_ns"] = measured.leave.value;
    report["events"] = measured.events;
    report["failures"] = measured.failures;
    return report;
}

int run_group(const Command& command) {
    const Experiment& experiment = command.experiment;
    GroupExperiment group;
    static_cast<Conditions&>(group) = experiment;
    group.hosts = *command.hosts;
    group.per_host = command.per_host;
    group.kinds = command.collectives;
    group.operations = experiment.operations;
    group.bytes = experiment.bytes;
    group.root = experiment.root;
    group.policy = experiment.policy.value_or(group.policy);
    group.settle = experiment.settle;
    group.kill = command.kill;
    const GroupMeasured measured = measure_groups(group);
    print(command, report_of(command, measured));
    return judge(command, measured.failures, measured.first_failure);
}

int list() {
    for (const NamedFigure& figure : all_figures()) fmt::print("{:<18} {}\n", figure.name, figure.what);
    fmt::print("\nnetworks, for --network:\n");
    for (const NamedNetwork& network : all_networks()) fmt::print("{:<18} {}\n", network.name, network.where);
    return 0;
}

int draw(const Command& command, const NamedFigure& figure, FigureOptions& options) {
    if (options.network == nullptr && figure.network != nullptr)
        options.network = named(all_networks(), figure.network);
    Figure drawn = figure.compute(options);
    const std::string conditions = fmt::format("seed {}{}", options.seed, options.quick ? ", quick" : "");
    if (figure.network != nullptr) {
        drawn.title += fmt::format(" ({})", options.network->name);
        drawn.remarks.push_back(fmt::format("network {}: {}", options.network->name, options.network->where));
    }
    drawn.remarks.push_back(conditions);
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    for (const std::string_view path : split(command.out, ','))  // one computation: --out a.csv,a.svg
        if (const std::string wrong = write_figure(drawn, std::string(path)); !wrong.empty()) {
            complain(wrong);
            return 1;
        }
    return 0;
}

int run_figure_command(const Command& command) {
    FigureOptions options;
    options.seed = command.experiment.seed;
    options.quick = command.quick;
    options.largest = command.largest.value_or(options.quick ? 256 : 65'536);
    options.network = named(all_networks(), command.network);
    if (isatty(STDERR_FILENO) != 0)
        options.progress = [](const std::string& point) { fmt::print(stderr, "\r\033[K{} ", point); };
    if (command.acceptance) return run_acceptance(options, command.full) ? 0 : 1;
    if (command.figure == "list") return list();
    const NamedFigure* figure = named(all_figures(), command.figure);
    if (figure == nullptr)
        return complain(fmt::format("--figure '{}': allowed are list, {}", command.figure,
                                    fmt::join(names_of(all_figures()), ", ")));
    for (const std::string& end : {std::string(".csv"), std::string(".svg")})
        if (command.out.empty() || command.out.ends_with(end)) return draw(command, *figure, options);
    return complain(fmt::format("--out '{}': the name must end in .csv or .svg", command.out));
}

}  // namespace

int run_program(int argc, char** argv) {
    try {
        Command command;
        if (const auto ended = parse(argc, argv, command)) return *ended;
        if (!command.figure.empty() || command.acceptance) return run_figure_command(command);
        if (command.campaign.seeds > 0) return run_campaign(command.campaign);
        return command.hosts ? run_group(command) : run_measurement(command);
    } catch (const std::exception& error) {
        complain(error.what());
        return 1;
    }
}

}  // namespace mcastcoll::sim
