// Reads the common secret of a group's members.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "wire/protection.h"

namespace mcastcoll::ofi {

// For a value of FI_MCASTCOLL_KEY_FILE that selects MUNGE: the path of munged's socket, or "" for the
// default.
std::optional<std::string> munge_socket(const std::string& value);
// For other values: the path of a secret file (base/secret_file.h), or empty for no key.
Result<wire::JoinKey> read_key_file(const std::string& path);

}  // namespace mcastcoll::ofi
