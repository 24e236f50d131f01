// The secret that members of a group have in common, from a file.
#pragma once

#include <string>

#include "base/result.h"
#include "wire/protection.h"

namespace mcastcoll::ofi {

// The value of FI_MCASTCOLL_KEY_FILE: a path, or empty for no key. The file has 16 to 4096 bytes of any kind,
// is this user's or root's, and nobody else may read or write it; otherwise the error says which of these it
// is not.
Result<wire::JoinKey> read_key_file(const std::string& path);

}  // namespace mcastcoll::ofi
