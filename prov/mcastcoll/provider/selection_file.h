// The table of algorithms that the user gives in a file (levels/selection.h says what is in it).
#pragma once

#include <string>
#include <vector>

#include "levels/selection.h"

namespace mcastcoll::ofi {

// The value of FI_MCASTCOLL_SELECTION: a path, or "auto" for no rows. The error names the file, and the line.
Result<std::vector<levels::Row>> read_selection(const std::string& value);

}  // namespace mcastcoll::ofi
