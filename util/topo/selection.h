// The table of algorithms that groups would have if this process led them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "levels/selection.h"

namespace mcastcoll::topo {

// Rows with the reason for each; as text it can be edited and used as a file.
std::string selection_as_text(const std::vector<levels::Row>& user, const std::string& file);
nlohmann::ordered_json selection_as_json(const std::vector<levels::Row>& user, const std::string& file);

}  // namespace mcastcoll::topo
