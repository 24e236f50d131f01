// Prefetching: memory that is needed soon is asked for now, so that nobody waits for it then.
#pragma once

#include <cstddef>

namespace mcastcoll {

inline constexpr std::size_t kCacheLine = 64;

// To read it; where it is not mapped nothing happens.
inline void prefetch(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(from + at);
}

// To write it.
inline void prefetch_to_write(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(from + at, 1);
}

}  // namespace mcastcoll
