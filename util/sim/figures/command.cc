#include "command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "acceptance.h"
#include "arguments/arguments.h"
#include "figure.h"

namespace mcastcoll::sim {
namespace {

template <typename Named>
std::vector<std::string> names_of(std::span<const Named> all) {
    std::vector<std::string> names;
    for (const Named& one : all) names.emplace_back(one.name);
    return names;
}

int list() {
    for (const NamedFigure& figure : all_figures()) fmt::print("{:<18} {}\n", figure.name, figure.what);
    fmt::print("\nnetworks, for --network:\n");
    for (const NamedNetwork& network : all_networks()) fmt::print("{:<18} {}\n", network.name, network.where);
    return 0;
}

int complain(const std::string& what) {
    fmt::print(stderr, "mcastcoll-sim: {}\n", what);
    return 2;
}

int draw(const FigureCommand& command, const NamedFigure& figure, FigureOptions& options) {
    if (options.network == nullptr && figure.network != nullptr)
        options.network = network_named(figure.network);
    Figure drawn = figure.compute(options);
    const std::string conditions = fmt::format("seed {}{}", options.seed, options.quick ? ", quick" : "");
    if (figure.network != nullptr) {
        drawn.title += fmt::format(" ({})", options.network->name);
        drawn.remarks.push_back(fmt::format("network {}: {}", options.network->name, options.network->where));
    }
    drawn.remarks.push_back(conditions);
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
    std::string begin = command.out;
    while (true) {  // one computation for several files: --out a.csv,a.svg
        const std::size_t comma = begin.find(',');
        if (const std::string wrong = write_figure(drawn, begin.substr(0, comma)); !wrong.empty()) {
            fmt::print(stderr, "mcastcoll-sim: {}\n", wrong);
            return 1;
        }
        if (comma == std::string::npos) return 0;
        begin = begin.substr(comma + 1);
    }
}

}  // namespace

void add_figure_options(Arguments& arguments, FigureCommand& command) {
    arguments.option("--figure", command.figure,
                     "compute a figure of the literature from this engine; list names them");
    arguments.option("--out", command.out,
                     "where a figure goes: FILE.csv, FILE.svg (needs gnuplot), or both with a comma");
    arguments.option("--network", command.network,
                     fmt::format("a network of this name: {}", fmt::join(names_of(all_networks()), ", ")));
    arguments.flag("--quick", command.quick, "fewer and smaller points in a figure or in --acceptance");
    arguments.flag("--acceptance", command.acceptance, "check the criteria that the protocol is held to");
    arguments.flag("--full", command.full, "--acceptance with up to 65,536 ranks");
}

int run_figure_command(const FigureCommand& command, std::uint64_t seed) {
    FigureOptions options;
    options.seed = seed;
    options.quick = command.quick;
    if (!command.network.empty() && (options.network = network_named(command.network)) == nullptr)
        return complain(fmt::format("--network '{}': allowed are {}", command.network,
                                    fmt::join(names_of(all_networks()), ", ")));
    if (isatty(STDERR_FILENO) != 0)
        options.progress = [](const std::string& point) { fmt::print(stderr, "\r\033[K{} ", point); };
    if (command.acceptance) return run_acceptance(options, command.full) ? 0 : 1;
    if (command.figure == "list") return list();
    const NamedFigure* figure = figure_named(command.figure);
    if (figure == nullptr)
        return complain(fmt::format("--figure '{}': allowed are list, {}", command.figure,
                                    fmt::join(names_of(all_figures()), ", ")));
    for (const std::string& end : {std::string(".csv"), std::string(".svg")})
        if (command.out.empty() || command.out.ends_with(end)) return draw(command, *figure, options);
    return complain(fmt::format("--out '{}': the name must end in .csv or .svg", command.out));
}

}  // namespace mcastcoll::sim
