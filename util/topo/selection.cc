#include "selection.h"

#include <fmt/format.h>

namespace mcastcoll::topo {

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
        "# The first row that matches decides; that of a group's rank 0 holds for the group.\n"
        "# Bytes: of the longest buffer that a member has.\n"
        "# operation     members  hosts    bytes         algorithm\n";
    for (const levels::Row& row : all_rows(user))
        text += fmt::format("{:<62}  # {}\n", levels::to_text(row), reason(row, file));
    return text +
           "# On one host everything takes levels, which is shared memory there. Whatever else is not above\n"
           "# takes levels, or messages if it moves blocks.\n";
}

}  // namespace mcastcoll::topo
