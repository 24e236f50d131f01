// Counters written to files by members when their endpoints close (FI_MCASTCOLL_STATS).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace mcastcoll::fabtest {

// A prefix of file names for this process only.
std::string statistics_prefix(const std::string& program);
// The sums over all members, by name; removes the files. Empty if no file exists.
std::map<std::string, std::uint64_t> take_statistics(const std::string& prefix);

}  // namespace mcastcoll::fabtest
