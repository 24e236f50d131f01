// A file that other users may have prepared a place for: folders such as /tmp are everybody's, and names can
// be guessed.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace mcastcoll {

inline constexpr std::string_view kUnfinishedSuffix = ".new";

// Puts a new file of this user's in the place of whatever has that name: nothing that is there is opened, so
// no link is followed, hard or symbolic, and no pipe. `folder` is a descriptor or AT_FDCWD. It is
// NAME.new until all of it is there.
Result<void> write_new_file(int folder, const std::string& name, std::string_view text, mode_t mode);

}  // namespace mcastcoll
