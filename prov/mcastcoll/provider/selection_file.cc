#include "provider/selection_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>

namespace mcastcoll::provider {

Result<std::vector<levels::Row>> read_selection(const std::string& value) {
    if (value.empty() || value == "auto") return std::vector<levels::Row>();
    std::ifstream file(value, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (!file.is_open() || file.bad()) return Error{EIO, "cannot read " + value};
    auto rows = levels::parse_selection(text);
    if (!rows) return Error{rows.error().code, value + " " + rows.error().message};
    return rows;
}

}  // namespace mcastcoll::provider
