// Writes the page of mcastcoll-topo --html.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "activity.h"
#include "topo.h"

namespace mcastcoll::topo {
namespace {

constexpr double kWidth = 720, kHeight = 180, kLeft = 64, kBottom = 24, kTop = 12;
// Distinct for red-green colour blindness.
constexpr std::array<const char*, 8> kLineColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#999999"};

struct Measure {
    const char* title;
    double (*of)(const Activity&);
};
constexpr Measure kMeasures[] = {
    {"operations a second", [](const Activity& one) { return one.operations; }},
    {"megabytes a second", [](const Activity& one) { return one.bytes / 1e6; }},
    {"percent of the fragments not received by multicast",
     [](const Activity& one) { return 100 * one.loss(); }},
};

struct Point {
    double at, value;
};
using Lines = std::map<std::string, std::vector<Point>>;  // by host

Lines lines_of(std::uint64_t key, const Measure& measure, const std::vector<Sample>& history) {
    Lines lines;
    for (const Sample& sample : history)
        for (const Activity& one : sample.activities)
            if (one.key == key) lines[one.host].push_back({sample.at, measure.of(one)});
    return lines;
}

// 1, 2 or 5 times a power of ten, and no less than `value`.
double round_up(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double times : {1, 2, 5})
        if (value <= times * power) return times * power;
    return 10 * power;
}

std::string chart(const Measure& measure, const Lines& lines) {
    double from = 0, to = 1, max = 0;
    for (const auto& [host, points] : lines)
        for (const Point& point : points) to = std::max(to, point.at), max = std::max(max, point.value);
    if (!lines.empty()) from = lines.begin()->second.front().at;
    if (to <= from) to = from + 1;
    max = max > 0 ? round_up(max) : 1;
    const auto x = [&](double at) { return kLeft + (kWidth - kLeft) * (at - from) / (to - from); };
    const auto y = [&](double value) { return kTop + (kHeight - kTop - kBottom) * (1 - value / max); };
    std::string svg = fmt::format("<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\">\n",
                                  measure.title, kWidth, kHeight);
    for (const double share : {0.0, 0.5, 1.0})
        svg += fmt::format(
            "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" "
            "text-anchor=\"end\">{:.4g}</text>\n",
            kLeft, y(share * max), kWidth, kLeft - 6, y(share * max) + 4, share * max);
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\">{:.0f} s</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0f} "
        "s</text>\n",
        kLeft, kHeight - 6, from, kWidth, kHeight - 6, to);
    std::size_t colour = 0;
    for (const auto& [host, points] : lines) {
        std::string path;
        for (const Point& point : points)
            path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.at), y(point.value));
        svg += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"{}\"><title>{}</title></path>\n",
                           kLineColours[colour++ % kLineColours.size()], path, as_html(host));
    }
    return svg + "</svg></figure>\n";
}

std::string legend(const Lines& lines) {
    std::string text;
    std::size_t colour = 0;
    for (const auto& [host, points] : lines)
        text += fmt::format("<span style=\"color:{}\">&#9632;</span> {} ",
                            kLineColours[colour++ % kLineColours.size()], as_html(host));
    return "<p>" + text + "</p>\n";
}

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>mcastcoll</title><style>
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
pre { overflow-x: auto; background: #f4f4f4; padding: .8em; font-size: 12px }
figure { margin: 1em 0 } svg { width: 100%; height: auto } text { font: 11px sans-serif; fill: #555 }
.grid { stroke: #ddd } .line { fill: none; stroke-width: 1.6 }
</style></head><body><h1>mcastcoll at work</h1>
)";

}  // namespace

std::string as_page(const std::vector<JobGroup>& groups, const std::vector<Sample>& history, Rank root) {
    std::string page = kHead;
    if (!history.empty()) page += "<pre>" + as_html(as_table(history.back().activities)) + "</pre>\n";
    for (const JobGroup& job : groups) {
        const topology::Map map(job.group.places, job.group.policy);
        page += fmt::format("<h2>{}: {} members, {}</h2>\n<p>group {:016x}; ranks {} report here</p>\n",
                            as_html(job.program), map.members(), as_html(job.group.state), job.group.key,
                            ranges(job.reporting));
        page += legend(lines_of(job.group.key, kMeasures[0], history));
        for (const Measure& measure : kMeasures)
            page += chart(measure, lines_of(job.group.key, measure, history));
        page += "<pre>" + as_html(levels_as_text(map, job.group.levels)) + "</pre>\n";
        if (index_of(root) < map.members()) page += as_svg(map, topology::Tree(map, root));
    }
    return page + "</body></html>\n";
}

}  // namespace mcastcoll::topo
