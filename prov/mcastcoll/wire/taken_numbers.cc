#include "wire/taken_numbers.h"

#include <algorithm>

namespace mcastcoll::wire {

bool TakenNumbers::take(std::uint64_t number) {
    const std::uint64_t block = number / kBits, last = last_ / kBits;
    if (number > last_) {
        for (std::uint64_t i = 1; i <= std::min(block - last, kWords); ++i) taken_[(last + i) % kWords] = 0;
        last_ = number;
    } else if (last - block >= kWords) {
        return false;
    }
    std::uint64_t& word = taken_[block % kWords];
    const std::uint64_t bit = std::uint64_t{1} << number % kBits;
    const bool taken = (word & bit) != 0;
    word |= bit;
    return !taken;
}

}  // namespace mcastcoll::wire
