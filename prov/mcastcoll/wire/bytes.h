// Explicit big-endian put and get. The only place that turns integers into bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mcastcoll::wire {

template <typename Unsigned>
requires std::is_unsigned_v<Unsigned>
constexpr void put(std::byte* at, Unsigned value) {
#pragma GCC unroll 8  // so that the compiler sees that it is one store of swapped bytes
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

}  // namespace mcastcoll::wire
