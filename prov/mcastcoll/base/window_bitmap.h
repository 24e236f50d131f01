// A sliding window of bits over fragment indices. Bit f is stored at f mod capacity, so the memory needed
// depends on the window, not on the message (1 GiB, say). The owner keeps every set bit inside [base, base +
// capacity) and clears the bits that base passes.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

namespace mcastcoll {

class WindowBitmap {
  public:
    // capacity: bits, rounded up to a power of two of at least 64.
    explicit WindowBitmap(std::uint32_t capacity)
        : words_(std::bit_ceil(std::max(capacity, 64U)) / 64),
          mask_(static_cast<std::uint32_t>(words_.size()) * 64 - 1) {}

    std::uint32_t capacity() const { return mask_ + 1; }
    bool test(std::uint32_t index) const { return words_[(index & mask_) >> 6] >> (index & 63) & 1; }
    void set(std::uint32_t index) { words_[(index & mask_) >> 6] |= std::uint64_t{1} << (index & 63); }
    void clear(std::uint32_t index) { words_[(index & mask_) >> 6] &= ~(std::uint64_t{1} << (index & 63)); }
    void clear_all() { std::fill(words_.begin(), words_.end(), 0); }
    bool none() const {
        for (std::uint64_t word : words_)
            if (word != 0) return false;
        return true;
    }

    // First index in [from, to) whose bit is set, or to. to - from must not exceed the capacity.
    std::uint32_t find_set(std::uint32_t from, std::uint32_t to) const {
        assert(to < from || to - from <= capacity());
        while (from < to) {
            const std::uint64_t word = words_[(from & mask_) >> 6] >> (from & 63);
            if (word != 0) return std::min(to, from + static_cast<std::uint32_t>(std::countr_zero(word)));
            from += 64 - (from & 63);
        }
        return to;
    }

  private:
    std::vector<std::uint64_t> words_;
    std::uint32_t mask_;
};

}  // namespace mcastcoll
