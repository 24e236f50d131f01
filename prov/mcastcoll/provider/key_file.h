// Reads the common secret of a group's members.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "wire/crypto.h"

namespace mcastcoll::provider {

// For a value of FI_MCASTCOLL_KEY_FILE that selects MUNGE: the path of munged's socket, or "" for the
// default.
std::optional<std::string> munge_socket(const std::string& value);
// For other values of FI_MCASTCOLL_KEY_FILE: the key derived from the secret in a file (base/secret_file.h),
// in memory that core dumps leave out. Null if the path is empty.
Result<std::shared_ptr<const wire::Key>> read_key_file(const std::string& path);

}  // namespace mcastcoll::provider
