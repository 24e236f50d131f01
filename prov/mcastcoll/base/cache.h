// Prefetching: loads memory into the cache ahead of its use.
#pragma once

#include <cstddef>

namespace mcastcoll {

inline constexpr std::size_t kCacheLine = 64;

// Prefetches for reading. Does nothing for addresses that are not mapped.
inline void prefetch(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(from + at);
}

// Prefetches for writing.
inline void prefetch_to_write(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(from + at, 1);
}

}  // namespace mcastcoll
