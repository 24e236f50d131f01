// Tables, pictures and their points.
#include "figure.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace mcastcoll::sim {
namespace {

const NamedNetwork kNetworks[] = {
    {"ethernet", "10 Gbit/s Ethernet and kernel sockets, one switch; assumed", {}},  // Model's defaults
    // 4x SDR carries 8 Gbit/s of data, or 1 ns per byte. A small MPI message took about 4.5 us one way; the
    // division between wire and processors is assumed.
    {"infiniband-2007",
     "4x SDR InfiniBand, MPI on verbs: 8 Gbit/s, 4.5 us one way; the division is assumed",
     {.latency = Nanoseconds{2900},
      .send_overhead = Nanoseconds{800},
      .receive_overhead = Nanoseconds{800},
      .gap = Nanoseconds{700},
      .ns_per_byte = 1.0}},
    // Elan4 moves about 900 MB/s. A small MPI message took about 3 us one way.
    {"quadrics-2005",
     "QsNet II (Elan4): 900 MB/s, 3 us one way; the division is assumed",
     {.latency = Nanoseconds{1600},
      .send_overhead = Nanoseconds{700},
      .receive_overhead = Nanoseconds{700},
      .gap = Nanoseconds{500},
      .ns_per_byte = 1.1}},
    // Sites 30 ms apart, machines with TCP over fast Ethernet, processes of a machine with its own MPI.
    {"grid-2000",
     "machines of a grid in 2000: TCP at 100 Mbit/s between, 100 MB/s inside, 10 Mbit/s and 30 ms between "
     "sites; assumed",
     {.latency = Nanoseconds{300'000},
      .send_overhead = Nanoseconds{100'000},
      .receive_overhead = Nanoseconds{100'000},
      .gap = Nanoseconds{1000},
      .ns_per_byte = 80,
      .memory = {.latency = Nanoseconds{20'000}, .overhead = Nanoseconds{10'000}, .ns_per_byte = 10},
      .wan = {.latency = Nanoseconds{30'000'000}, .ns_per_byte = 800}}},
};

std::string table_of(const Figure& figure) {
    std::string text = fmt::format("# {}\n", figure.title);
    for (const std::string& remark : figure.remarks) text += fmt::format("# {}\n", remark);
    text += fmt::format("{}\n", fmt::join(figure.columns, ","));
    for (const std::vector<double>& row : figure.rows) {
        std::string line;
        for (const double value : row) line += fmt::format("{}{:.6g}", line.empty() ? "" : ",", value);
        text += line + "\n";
    }
    return text;
}

// gnuplot omits values that it cannot draw: the names of the columns, and values without a logarithm.
std::string script_of(const Figure& figure, const std::string& path) {
    std::string script = fmt::format(
        "$table << END\n{}END\nset datafile separator ','\n"
        "set terminal svg size 800,500 noenhanced background 'white'\nset output '{}'\nset title '{}'\n"
        "set xlabel '{}'\nset ylabel '{}'\nset grid\nset key below\n",
        table_of(figure), path, figure.title, figure.x.label, figure.y.label);
    if (figure.x.logarithmic > 0) script += fmt::format("set logscale x {}\n", figure.x.logarithmic);
    script += figure.y.logarithmic > 0 ? fmt::format("set logscale y {}\n", figure.y.logarithmic)
                                       : "set yrange [0:*]\n";
    std::string plots;
    for (const Figure::Curve& curve : figure.curves)
        plots += fmt::format(
            "{}$table using 1:{} with {} title '{}'", plots.empty() ? "plot " : ", ", curve.column + 1,
            curve.points ? "points pointtype 7 pointsize 0.7" : "linespoints linewidth 2 pointsize 0.6",
            curve.title);
    return script + plots + "\n";
}

std::string write_text(const std::string& text, const std::string& path) {
    FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "we");
    if (file == nullptr) return fmt::format("cannot write {}: {}", path, std::strerror(errno));
    const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = path.empty() ? std::fflush(file) == 0 : std::fclose(file) == 0;
    return good && closed ? "" : fmt::format("cannot write {}: {}", path, std::strerror(errno));
}

std::string draw(const Figure& figure, const std::string& path) {
    if (std::system("command -v gnuplot >/dev/null 2>&1") != 0)
        return "drawing needs gnuplot: run util/install-deps, or write a .csv";
    const std::unique_ptr<FILE, int (*)(FILE*)> gnuplot(::popen("gnuplot", "we"), ::pclose);
    if (!gnuplot) return fmt::format("cannot start gnuplot: {}", std::strerror(errno));
    const std::string script = script_of(figure, path);
    if (std::fwrite(script.data(), 1, script.size(), gnuplot.get()) != script.size())
        return "gnuplot does not accept commands";
    return {};
}

}  // namespace

std::span<const NamedFigure> all_figures() {
    static const std::vector<NamedFigure> all = [] {
        std::vector<NamedFigure> figures = two_stage_figures();
        for (const auto& more : {channel_figures(), site_figures(), growth_figures(), redundancy_figures()})
            figures.insert(figures.end(), more.begin(), more.end());
        return figures;
    }();
    return all;
}

std::string write_figure(const Figure& figure, const std::string& path) {
    if (path.ends_with(".svg")) return draw(figure, path);
    return write_text(table_of(figure), path);
}

std::span<const NamedNetwork> all_networks() {
    return kNetworks;
}

std::string_view name_of(const Policy& policy) {
    return policy ? engine::name_of(*policy) : "binomial";
}

Experiment trial_for(const FigureOptions& options, const Policy& policy, std::uint32_t ranks,
                     std::uint32_t operations, std::uint64_t bytes) {
    Experiment experiment;
    experiment.policy = policy;
    experiment.ranks = ranks;
    experiment.operations = operations;
    experiment.bytes = bytes;
    experiment.root = 0;
    experiment.warm_up = 8;
    experiment.redundancy = engine::Redundancy::off;  // the papers' protocols have no redundancy
    experiment.seed = options.seed;
    if (options.network != nullptr) experiment.model = options.network->model;
    return experiment;
}

Measured run_trial(const FigureOptions& options, const Experiment& experiment) {
    const std::string point =
        fmt::format("{} ranks, {} bytes, {}, faults {}", experiment.ranks, experiment.bytes,
                    name_of(experiment.policy), to_string(experiment.faults));
    options.begin(point);
    Measured measured = measure(experiment);
    if (measured.failures > 0) throw std::runtime_error(fmt::format("{}: {}", point, measured.first_failure));
    return measured;
}

}  // namespace mcastcoll::sim
