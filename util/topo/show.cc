#include <fmt/format.h>

#include "topo.h"

namespace mcastcoll::topo {

using topology::Level;
using topology::Map;
using topology::ReportedLevel;
using topology::Tree;

int complain(const std::string& what, int code) {
    fmt::print(stderr, "mcastcoll-topo: {}\n", what);
    return code;
}

std::string ranges(std::span<const Rank> ranks) {
    std::string text;
    for (std::size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
        last = first;
        while (last + 1 < ranks.size() && index_of(ranks[last + 1]) == index_of(ranks[last]) + 1) ++last;
        if (!text.empty()) text += ',';
        text += fmt::format("{}", index_of(ranks[first]));
        if (last > first) text += fmt::format("-{}", index_of(ranks[last]));
    }
    return text;
}

std::string where(const Map& map, Rank rank) {
    std::string text;
    for (std::size_t i = 1; i < topology::kLevels; ++i) {
        const Level level = topology::level_of(i);
        // A level with a single cluster is omitted.
        if (map.clusters(level) < 2) continue;
        const std::string title = map.title(level, map.cluster(rank, level));
        if (title.empty()) continue;
        if (!text.empty()) text += ", ";
        text += fmt::format("{} {}", topology::name_of(level), title);
    }
    return text;
}

std::string levels_as_text(const Map& map, const std::vector<ReportedLevel>& levels) {
    std::string text =
        fmt::format("{:<8} {:>8}  {:<13} {:<10} {}\n", "level", "clusters", "transport", "algorithm", "why");
    for (const ReportedLevel& one : levels)
        text += fmt::format("{:<8} {:>8}  {:<13} {:<10} {}\n", topology::name_of(one.level),
                            map.clusters(one.level), one.connects ? one.transport : "-",
                            one.connects ? one.algorithm : "-", one.why);
    return text;
}

std::string tree_as_text(const Map& map, const Tree& tree) {
    struct Line {
        Rank rank;
        std::size_t depth;
    };
    std::string text;
    std::vector<Line> stack{{tree.root(), 0}};
    while (!stack.empty()) {
        const auto [rank, depth] = stack.back();
        stack.pop_back();
        const std::string place = where(map, rank);
        text += fmt::format("{:{}}{}{}{}\n", "", 2 * depth, index_of(rank),
                            depth == 0 ? " root" : fmt::format(" by {}", topology::name_of(tree.level(rank))),
                            place.empty() ? "" : fmt::format("  ({})", place));
        // Leaves first, on a line for each level.
        std::vector<Rank> leaves, inner;
        const auto children = tree.children(rank);
        for (const Rank child : children) (tree.children(child).empty() ? leaves : inner).push_back(child);
        for (std::size_t first = 0, last = 0; first < leaves.size(); first = last) {
            while (last < leaves.size() && tree.level(leaves[last]) == tree.level(leaves[first])) ++last;
            text += fmt::format("{:{}}{} by {}\n", "", 2 * depth + 2,
                                ranges(std::span(leaves).subspan(first, last - first)),
                                topology::name_of(tree.level(leaves[first])));
        }
        for (auto child = inner.rbegin(); child != inner.rend(); ++child)
            stack.push_back({*child, depth + 1});
    }
    return text;
}

std::vector<levels::Row> all_rows(const std::vector<levels::Row>& user) {
    std::vector<levels::Row> rows = user;
    rows.insert(rows.end(), levels::built_in_rows().begin(), levels::built_in_rows().end());
    return rows;
}

std::string reason(const levels::Row& row, const std::string& file) {
    return row.line > 0 ? fmt::format("{} line {}", file, row.line) : fmt::format("built in: {}", row.why);
}

std::string selection_as_text(const std::vector<levels::Row>& user, const std::string& file) {
    std::string text =
        "# The first matching row decides. The table of a group's rank 0 applies to the whole group.\n"
        "# Bytes: of the longest buffer of a member.\n"
        "# operation     members  hosts    bytes         algorithm\n";
    for (const levels::Row& row : all_rows(user))
        text += fmt::format("{:<62}  # {}\n", levels::to_text(row), reason(row, file));
    return text +
           "# On one host all operations use levels, that is shared memory. "
           "Operations without a matching row\n"
           "# use levels, or messages if they move blocks.\n";
}

}  // namespace mcastcoll::topo
