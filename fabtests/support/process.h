// What this process holds.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace mcastcoll::fabtest {

inline std::size_t open_descriptors() {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace mcastcoll::fabtest
