// Reads the user's table of algorithms from a file (format: levels/selection.h).
#pragma once

#include <string>
#include <vector>

#include "levels/selection.h"

namespace mcastcoll::provider {

// `value` of FI_MCASTCOLL_SELECTION: a path, or "auto" for no rows. An error names the file and the line.
Result<std::vector<levels::Row>> read_selection(const std::string& value);

}  // namespace mcastcoll::provider
