// Reads the fuzzer's input: numbers from the end, strings of bytes from the beginning, so that a mutation of
// one kind leaves the other unchanged. Once the input is used up, every number is its minimum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace mcastcoll::fuzz {

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

    std::size_t remaining_bytes() const { return left_; }
    // A number from `min` to `max`, both included.
    template <typename Number>
    Number between(Number min, Number max) {
        const std::uint64_t range = static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min);
        std::uint64_t number = 0;
        for (unsigned bits = 0; bits < 8 * sizeof(Number) && range >> bits > 0 && left_ > 0; bits += 8)
            number = number << 8 | data_[--left_];
        if (range < UINT64_MAX) number %= range + 1;
        return static_cast<Number>(static_cast<std::uint64_t>(min) + number);
    }
    template <typename Number>
    Number any() {
        static_assert(std::is_unsigned_v<Number>);
        return between<Number>(0, static_cast<Number>(-1));
    }
    bool flag() { return between(0U, 1U) != 0; }
    template <typename T, std::size_t count>
    const T& one_of(const T (&all)[count]) {
        return all[between<std::size_t>(0, count - 1)];
    }
    template <typename Array>
    const auto& one_of(const Array& all) {
        return all[between<std::size_t>(0, all.size() - 1)];
    }
    std::vector<std::byte> bytes(std::size_t max) {
        const std::size_t count = std::min(between<std::size_t>(0, max), left_);
        std::vector<std::byte> taken(count);
        if (count > 0) std::memcpy(taken.data(), data_, count);
        data_ += count;
        left_ -= count;
        return taken;
    }

  private:
    const std::uint8_t* data_;
    std::size_t left_;
};

}  // namespace mcastcoll::fuzz
