// The secret that members of a group have in common, from a file.
#pragma once

#include <string>

#include "base/result.h"
#include "wire/protection.h"

namespace mcastcoll::ofi {

// The value of FI_MCASTCOLL_KEY_FILE: a path (base/secret_file.h), or empty for no key.
Result<wire::JoinKey> read_key_file(const std::string& path);

}  // namespace mcastcoll::ofi
