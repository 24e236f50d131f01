// Which numbers of one sender have been taken, as far as the latest ones go; older ones count as taken (RFC
// 6479): so that what is sent again by others is not taken again, and what was reordered is.
#pragma once

#include <array>
#include <cstdint>

namespace mcastcoll::wire {

class TakenNumbers {
  public:
    static constexpr std::uint64_t kBack = 960;  // at least so many
    // The number with this lower half that is nearest, of those that are not too old: the upper half does not
    // travel, and a wrong one has a wrong tag (RFC 4303, appendix A).
    std::uint64_t complete(std::uint32_t lower) const {
        const std::uint64_t oldest = last_ < kBack ? 0 : last_ - kBack;
        return oldest + static_cast<std::uint32_t>(lower - static_cast<std::uint32_t>(oldest));
    }
    // False: it was taken before, or is too old.
    bool take(std::uint64_t number);

  private:
    static constexpr std::uint64_t kBits = 64, kWords = kBack / kBits + 1;
    std::uint64_t last_ = 0;
    std::array<std::uint64_t, kWords> taken_{};
};

}  // namespace mcastcoll::wire
