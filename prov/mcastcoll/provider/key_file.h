// The secret that members of a group have in common, from a file.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "wire/protection.h"

namespace mcastcoll::ofi {

// Of a value of FI_MCASTCOLL_KEY_FILE that says that MUNGE carries secrets: where munged listens, "" where it
// usually does.
std::optional<std::string> munge_socket(const std::string& value);
// Of others: a path (base/secret_file.h), or empty for no key.
Result<wire::JoinKey> read_key_file(const std::string& path);

}  // namespace mcastcoll::ofi
