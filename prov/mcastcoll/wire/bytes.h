// Big-endian put and get: the only place that converts integers to bytes, and bytes to the types of C
// libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/types.h"

namespace mcastcoll::wire {

template <typename Unsigned>
requires std::is_unsigned_v<Unsigned>
constexpr void put(std::byte* at, Unsigned value) {
#pragma GCC unroll 8  // lets the compiler emit one store of swapped bytes
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
        at[i] = static_cast<std::byte>(value >> (8 * (sizeof(Unsigned) - 1 - i)) & 0xff);
}

template <typename Unsigned>
requires std::is_unsigned_v<Unsigned>
constexpr Unsigned get(const std::byte* at) {
    Unsigned value = 0;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
        value = static_cast<Unsigned>(value << 7 << 1 | std::to_integer<Unsigned>(at[i]));
    return value;
}

// Bitmaps: bit i is in byte i / 8, lowest bit first.
inline void set_bit(std::byte* bits, std::size_t i) {
    bits[i / 8] |= static_cast<std::byte>(1U << (i % 8));
}
inline bool test_bit(const std::byte* bits, std::size_t i) {
    return std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1;
}

inline std::uint8_t* raw(std::byte* at) {
    return reinterpret_cast<std::uint8_t*>(at);
}
inline const std::uint8_t* raw(Bytes bytes) {
    return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

}  // namespace mcastcoll::wire
