// Replay window (RFC 6479): stores which of a sender's latest numbers were accepted; older numbers count as
// accepted. So replayed packets are refused, and reordered packets are accepted.
#pragma once

#include <array>
#include <cstdint>

namespace mcastcoll::wire {

class TakenNumbers {
  public:
    static constexpr std::uint64_t kBack = 960;  // at least this many numbers below the last are stored
    // Completes a number of which only the lower half is transmitted: returns the lowest number with this
    // lower half that is not too old. If the guess is wrong, the tag is invalid (RFC 4303, appendix A).
    std::uint64_t complete(std::uint32_t lower) const {
        const std::uint64_t oldest = last_ < kBack ? 0 : last_ - kBack;
        return oldest + static_cast<std::uint32_t>(lower - static_cast<std::uint32_t>(oldest));
    }
    // False if the number was accepted before or is too old.
    bool take(std::uint64_t number);

  private:
    static constexpr std::uint64_t kBits = 64, kWords = kBack / kBits + 1;
    std::uint64_t last_ = 0;
    std::array<std::uint64_t, kWords> taken_{};
};

}  // namespace mcastcoll::wire
