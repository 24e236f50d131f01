// The table of algorithms that groups would have if this process led them.
#pragma once

#include <string>
#include <vector>

#include "levels/selection.h"

namespace mcastcoll::topo {

// The user's, then those that are built in.
std::vector<levels::Row> all_rows(const std::vector<levels::Row>& user);
// Why a row is there; file: where the user's come from.
std::string reason(const levels::Row& row, const std::string& file);
// Rows with the reason for each; it can be edited and used as a file.
std::string selection_as_text(const std::vector<levels::Row>& user, const std::string& file);

}  // namespace mcastcoll::topo
