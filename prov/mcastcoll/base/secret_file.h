// Reads a secret shared by several hosts from a file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll {

// Returns 16 to 4096 bytes of any value, without trailing line breaks, which editors add. Refuses a secret
// with too few distinct bytes. The file must belong to this user or to root and must not be readable or
// writable for others; the error names the condition that failed.
Result<std::vector<std::byte>> read_secret_file(const std::string& path);

}  // namespace mcastcoll
