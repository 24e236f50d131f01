#include "program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "campaign.h"
#include "command_line.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::sim;

// Of an empty message between two idle hosts.
Nanoseconds round_trip(const Command& command) {
    return command.experiment.model.round_trip(wire::kHeaderBytes);
}

double per_operation(const Command& command, std::uint64_t count) {
    return static_cast<double>(count) / command.experiment.groups / command.experiment.operations;
}

void print_json(const Command& command, const Measured& measured) {
    const Experiment& experiment = command.experiment;
    nlohmann::ordered_json object;
    object["ranks"] = experiment.ranks;
    object["size"] = experiment.bytes;
    object["loss"] = command.loss_percent;
    object["policy"] = command.policy;
    object["ops"] = experiment.operations;
    object["seed"] = experiment.seed;
    object["groups"] = experiment.groups;
    object["faults"] = to_string(experiment.faults);
    object["median_ns"] = measured.quantile(0.5).value;
    object["p99_ns"] = measured.quantile(0.99).value;
    object["last_median_ns"] = measured.last().value;
    object["rtt_ns"] = round_trip(command).value;
    object["spread"] = measured.spread();
    object["messages_per_op"] = per_operation(command, measured.traffic.messages);
    object["datagrams_per_op"] = per_operation(command, measured.traffic.datagrams);
    object["peak_bytes_per_member"] = measured.peak_bytes_per_member;
    object["failures"] = measured.failures;
    object["configuration"] = measured.configuration;
    fmt::print("{}\n", object.dump());
}

std::string text_of(Nanoseconds time) {
    return fmt::format("{:.1f} us", in_us(time));
}

void print_table(const Command& command, const Measured& measured) {
    const Experiment& experiment = command.experiment;
    auto line = [](const char* what, const std::string& value) { fmt::print("{:<28} {}\n", what, value); };
    fmt::print("{} ranks, {} broadcasts of {} bytes, policy {}, seed {}\n", experiment.ranks,
               experiment.operations, experiment.bytes, command.policy, experiment.seed);
    line("group", measured.configuration);
    line("faults", to_string(experiment.faults));
    line("round trip", text_of(round_trip(command)));
    line("median of all ranks", text_of(measured.quantile(0.5)));
    line("99 of 100 within", text_of(measured.quantile(0.99)));
    line("last rank, median", text_of(measured.last()));
    line("spread", fmt::format("{:.2f}", measured.spread()));
    line("messages per operation", fmt::format("{:.1f}", per_operation(command, measured.traffic.messages)));
    line("datagrams per operation",
         fmt::format("{:.1f}", per_operation(command, measured.traffic.datagrams)));
    line("most memory of a member", fmt::format("{} bytes", measured.peak_bytes_per_member));
    line("simulated", fmt::format("{:.3f} ms, {} events", static_cast<double>(measured.duration.value) / 1e6,
                                  measured.events));
    line("failures", fmt::format("{}", measured.failures));
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
    if (command.json)
        print_json(command, measured);
    else
        print_table(command, measured);
    if (measured.failures == 0) return 0;
    fmt::print(stderr, "mcastcoll-sim: {}\nreplay with: {}\n", measured.trouble, command.replay);
    return 1;
}

}  // namespace

namespace mcastcoll::sim {

int run_program(int argc, char** argv) {
    try {
        Command command;
        if (const auto ended = parse(argc, argv, command)) return *ended;
        if (command.figures.wanted()) return run_figure_command(command.figures, command.experiment.seed);
        if (command.campaign > 0) return run_campaign({command.campaign, command.first, command.jobs});
        return run_measurement(command);
    } catch (const std::exception& error) {
        fmt::print(stderr, "mcastcoll-sim: {}\n", error.what());
        return 1;
    }
}

}  // namespace mcastcoll::sim
