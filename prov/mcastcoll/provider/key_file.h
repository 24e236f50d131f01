// The secret that members of a group have in common, from a file.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/crypto.h"

namespace mcastcoll::ofi {

// Of a value of FI_MCASTCOLL_KEY_FILE that says that MUNGE carries secrets: where munged listens, "" where it
// usually does.
std::optional<std::string> munge_socket(const std::string& value);
// The key that is made of the file's secret (base/secret_file.h), in memory that is left out of core dumps.
// Null if the path is empty.
Result<std::shared_ptr<const wire::Key>> read_key_file(const std::string& path);

}  // namespace mcastcoll::ofi
