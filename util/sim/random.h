// The simulator's only random generator: SplitMix64 (Steele, Lea, Flood 2014), so that a seed gives the same
// run with every compiler and standard library.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/types.h"

namespace mcastcoll::sim {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15ULL);
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
        return mixed ^ (mixed >> 31);
    }
    // Returns a number in [0, bound); 0 for a bound of 0.
    std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
    // Returns a number in [min, max].
    std::uint64_t between(std::uint64_t min, std::uint64_t max) { return min + below(max - min + 1); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    // Impossible and certain events draw no number.
    bool chance(double share) { return share > 0 && (share >= 1 || unit() < share); }
    Nanoseconds up_to(Nanoseconds max) {
        return max.value <= 0
                   ? Nanoseconds{}
                   : Nanoseconds{static_cast<std::int64_t>(below(static_cast<std::uint64_t>(max.value)))};
    }

  private:
    std::uint64_t state_;
};

// Returns a number whose bytes are in little-endian order on every processor.
template <typename Number>
constexpr Number little_endian(Number number) {
    if constexpr (std::endian::native == std::endian::little) return number;
    Number swapped = 0;
    for (std::size_t i = 0; i < sizeof number; ++i)
        swapped = static_cast<Number>(swapped << 7 << 1 | (number >> (8 * i) & 0xff));
    return swapped;
}

// Returns 0, 1, 2 ... up to count - 1.
inline std::vector<std::uint32_t> first_numbers(std::uint32_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    return numbers;
}

}  // namespace mcastcoll::sim
