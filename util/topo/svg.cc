// Draws the tree: leaves side by side, parents above the middle of their children, edges in the colours of
// their levels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "topo.h"

namespace mcastcoll::topo {
namespace {

using topology::Map;
using topology::Tree;

constexpr double kRowHeight = 64, kMargin = 24, kLegendWidth = 190;
// The colours of the levels, from far to near; distinct for red-green colour blindness.
constexpr std::array<const char*, topology::kLevels> kColours{
    "#d55e00", "#e69f00", "#0072b2", "#009e73", "#56b4e9", "#cc79a7", "#999999", "#666666", "#bbbbbb"};

struct Layout {
    std::vector<double> x;
    std::vector<std::size_t> row;
    std::size_t leaves = 0, rows = 0;
};

Layout lay_out(const Tree& tree) {
    Layout layout;
    layout.x.resize(tree.members());
    layout.row.resize(tree.members());
    std::vector<Rank> order;  // parents before their children, the leftmost child first
    std::vector<Rank> stack{tree.root()};
    while (!stack.empty()) {
        const Rank rank = stack.back();
        stack.pop_back();
        order.push_back(rank);
        const auto children = tree.children(rank);
        for (auto child = children.rbegin(); child != children.rend(); ++child) {
            layout.row[index_of(*child)] = layout.row[index_of(rank)] + 1;
            stack.push_back(*child);
        }
        if (children.empty()) layout.x[index_of(rank)] = static_cast<double>(layout.leaves++);
        layout.rows = std::max(layout.rows, layout.row[index_of(rank)] + 1);
    }
    for (auto rank = order.rbegin(); rank != order.rend(); ++rank) {
        const auto children = tree.children(*rank);
        if (children.empty()) continue;
        layout.x[index_of(*rank)] =
            (layout.x[index_of(children.front())] + layout.x[index_of(children.back())]) / 2;
    }
    return layout;
}

}  // namespace

std::string as_html(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '&')
            result += "&amp;";
        else if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else
            result += c;
    }
    return result;
}

std::string as_svg(const Map& map, const Tree& tree) {
    const Layout layout = lay_out(tree);
    // Large groups get small circles, to limit the width of the picture.
    const double step = std::clamp(4000.0 / static_cast<double>(layout.leaves), 4.0, 30.0);
    const double radius = std::min(11.0, step * 0.42);
    const auto x = [&](Rank rank) { return kMargin + radius + layout.x[index_of(rank)] * step; };
    const auto y = [&](Rank rank) {
        return kMargin + radius + static_cast<double>(layout.row[index_of(rank)]) * kRowHeight;
    };
    const double width =
        2 * kMargin + 2 * radius + static_cast<double>(layout.leaves - 1) * step + kLegendWidth;
    const double height =
        std::max(2 * kMargin + 2 * radius + static_cast<double>(layout.rows - 1) * kRowHeight,
                 2 * kMargin + 18 * static_cast<double>(map.levels().size()));
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    for (std::size_t i = 0; i < map.members(); ++i) {
        const Rank rank = rank_of(i);
        if (rank == tree.root()) continue;
        svg += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
            "stroke-width=\"2\"/>\n",
            x(tree.parent(rank)), y(tree.parent(rank)), x(rank), y(rank),
            kColours[topology::index_of(tree.level(rank))]);
    }
    for (std::size_t i = 0; i < map.members(); ++i) {
        const Rank rank = rank_of(i);
        svg += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"black\">"
            "<title>{} {}</title></circle>\n",
            x(rank), y(rank), radius, rank == tree.root() ? "#f0e442" : "white", i,
            as_html(where(map, rank)));
        if (radius >= 7)
            svg += fmt::format(
                "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
                x(rank), y(rank) + radius * 0.35, radius * (i < 100 ? 1.0 : 0.8), i);
    }
    double line = kMargin + 12;
    for (const topology::Level level : map.levels()) {
        if (topology::is_inside_host(level)) break;
        svg += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
            "stroke-width=\"3\"/><text x=\"{4:.1f}\" y=\"{5:.1f}\" font-size=\"12\">{6}: {7}</text>\n",
            width - kLegendWidth + 10, width - kLegendWidth + 34, line - 4,
            kColours[topology::index_of(level)], width - kLegendWidth + 40, line, topology::name_of(level),
            map.policy().algorithms.at(level).name());
        line += 18;
    }
    return svg + "</svg>\n";
}

bool write_svg(const std::string& file, const Map& map, const Tree& tree) {
    if (file.empty()) return true;
    std::ofstream stream(file);
    stream << as_svg(map, tree);
    stream.close();
    return !stream.fail();
}

}  // namespace mcastcoll::topo
