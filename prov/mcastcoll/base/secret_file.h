// A secret that several machines have in common, from a file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll {

// 16 to 4096 bytes of any kind; line breaks at the end, which editors add, do not count; and with too few
// different ones it is no secret. The file is this user's or root's, and nobody else may read or write it;
// otherwise the error says which of these it is not.
Result<std::vector<std::byte>> read_secret_file(const std::string& path);

}  // namespace mcastcoll
