// Tables and pictures.
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "figure.h"

namespace mcastcoll::sim {
namespace {

constexpr NamedFigure kFigures[] = {
    {"size", "latency against the number of ranks, binomial tree and ours", "infiniband-2007", figure_size},
    {"ranks", "completion rank by rank at 116 ranks", "infiniband-2007", figure_ranks},
    {"first-last", "first and last receiver against the number of ranks", "infiniband-2007",
     figure_first_last},
    {"penalty", "rounds along the ring against loss", "infiniband-2007", figure_penalty},
    {"crc", "damaged datagrams, and what the checksum finds", "infiniband-2007", figure_crc},
    {"collisions", "odds that groups share an address", nullptr, figure_collisions},
    {"channels-latency", "broadcast channels against size, to 128 ranks", "quadrics-2005",
     figure_channels_latency},
    {"channels-cost", "what reliability costs against size", "quadrics-2005", figure_channels_cost},
    {"channels-count", "latency against the number of channels", "quadrics-2005", figure_channels_count},
    {"karonis-wan", "trees against hierarchy, wide area", "ethernet", figure_karonis_wan},
    {"karonis-lan", "trees against hierarchy, local area", "ethernet", figure_karonis_lan},
    {"karonis-both", "trees against hierarchy, both", "ethernet", figure_karonis_both},
    {"karonis-clusters", "the same with a cluster at each of two sites", "ethernet", figure_karonis_clusters},
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

// gnuplot's way of saying that a point is not there; a logarithm has no zero.
std::string point(const Figure& figure, const std::vector<double>& row, std::size_t column) {
    const bool drawable = (figure.x.logarithmic == 0 || row[0] > 0) &&
                          (figure.y.logarithmic == 0 || row[column] > 0) && std::isfinite(row[column]);
    return drawable ? fmt::format("{:.9g} {:.9g}\n", row[0], row[column]) : "";
}

std::string script_of(const Figure& figure, const std::string& path) {
    std::string script = fmt::format(
        "set terminal svg size 800,500 noenhanced background 'white'\nset output '{}'\nset title '{}'\n"
        "set xlabel '{}'\nset ylabel '{}'\nset grid\nset key below\n",
        path, figure.title, figure.x.label, figure.y.label);
    if (figure.x.logarithmic > 0) script += fmt::format("set logscale x {}\n", figure.x.logarithmic);
    if (figure.y.logarithmic > 0)
        script += fmt::format("set logscale y {}\n", figure.y.logarithmic);
    else
        script += "set yrange [0:*]\n";
    std::string plots;
    for (const Figure::Curve& curve : figure.curves)
        plots += fmt::format(
            "{}'-' with {} title '{}'", plots.empty() ? "plot " : ", ",
            curve.points ? "points pointtype 7 pointsize 0.7" : "linespoints linewidth 2 pointsize 0.6",
            curve.title);
    script += plots + "\n";
    for (const Figure::Curve& curve : figure.curves) {
        for (const std::vector<double>& row : figure.rows) script += point(figure, row, curve.column);
        script += "e\n";
    }
    return script;
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
        return "drawing needs gnuplot: run util/install-deps, or ask for a .csv";
    const std::unique_ptr<FILE, int (*)(FILE*)> gnuplot(::popen("gnuplot", "we"), ::pclose);
    if (!gnuplot) return fmt::format("cannot start gnuplot: {}", std::strerror(errno));
    const std::string script = script_of(figure, path);
    if (std::fwrite(script.data(), 1, script.size(), gnuplot.get()) != script.size())
        return "gnuplot takes no orders";
    return {};
}

}  // namespace

std::span<const NamedFigure> all_figures() {
    return kFigures;
}

std::string write_figure(const Figure& figure, const std::string& path) {
    if (path.ends_with(".svg")) return draw(figure, path);
    return write_text(table_of(figure), path);
}

}  // namespace mcastcoll::sim
