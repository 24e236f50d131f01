// The counters that members leave in files when their endpoints close (FI_MCASTCOLL_STATS).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace mcastcoll::fabtest {

// A beginning of file names that is this process's own.
std::string statistics_prefix(const std::string& program);
// The sums over all members, by name; removes the files. Empty when there are none.
std::map<std::string, std::uint64_t> take_statistics(const std::string& prefix);

}  // namespace mcastcoll::fabtest
