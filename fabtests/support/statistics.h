// Counters written to files by members when their endpoints close (FI_MCASTCOLL_STATS).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace mcastcoll::fabtest {

// Returns a prefix of file names, for FI_MCASTCOLL_STATS, that no other process uses.
std::string statistics_prefix(const std::string& program);
// Returns the sums of the counters over all members, by name, and removes the files. Empty if no file exists.
std::map<std::string, std::uint64_t> take_statistics(const std::string& prefix);

}  // namespace mcastcoll::fabtest
