// Safe creation of files in folders writable for all users, such as /tmp, where another user may have created
// a link or a pipe under a guessed name.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace mcastcoll {

inline constexpr std::string_view kUnfinishedSuffix = ".new";

// Creates a new file of this user under `name` and replaces an existing entry. The existing entry is never
// opened, so no hard or symbolic link is followed and no pipe is used. `folder` is a descriptor or AT_FDCWD.
// The file is called NAME.new until the text is complete.
Result<void> write_new_file(int folder, const std::string& name, std::string_view text, mode_t mode);

}  // namespace mcastcoll
