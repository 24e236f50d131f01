// Parity over a run of a message's fragments: of a block and its rows of parity, as many as the block has
// fragments suffice to have all of it. A Reed-Solomon code with a Cauchy matrix over GF(256) (Blömer et al.,
// ICSI TR-95-048, 1995), whose every square part can be inverted; the arithmetic is isa-l's. A last fragment
// that is shorter counts as filled up with zeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace mcastcoll::engine {

// Fragments of a block, but for a message's last one; and rows of parity that it can have.
inline constexpr std::uint32_t kBlockFragments = 64, kMostParity = 8;

// A row of parity of a block: which, and its bytes, as many as a fragment has.
struct ParityRow {
    std::uint32_t row = 0;
    std::byte* bytes = nullptr;
};

class ParityCode {
  public:
    explicit ParityCode(std::uint32_t fragment_bytes) : zeros_(fragment_bytes), scratch_(fragment_bytes) {}

    // That row of these bytes, which begin with a block's first fragment and end with its last. It holds
    // until the next call.
    Bytes encode(Bytes block, std::uint32_t row);
    // Puts the missing fragments of a block into their places. They are named in order, and there are as many
    // rows as of them; what is in the rows is used up.
    void restore(std::span<std::byte> block, std::span<const std::uint32_t> missing,
                 std::span<const ParityRow> rows);

  private:
    void add_up(Bytes block, std::span<const std::uint32_t> missing, std::uint32_t row, std::byte* sum);

    std::vector<std::byte> zeros_, scratch_;
    std::vector<std::byte> last_ = zeros_;  // a last fragment, filled up
};

}  // namespace mcastcoll::engine
