// Erasure code over a block of a message's fragments: any m rows of parity restore any m missing fragments. A
// Reed-Solomon code with a Cauchy matrix over GF(256) (Blömer et al., ICSI TR-95-048, 1995), each square
// submatrix of which is invertible; the arithmetic is isa-l's. A shorter last fragment counts as padded with
// zeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace mcastcoll::engine {

// Fragments per block (the last block of a message may be shorter), and largest number of parity rows per
// block.
inline constexpr std::uint32_t kBlockFragments = 64, kMaxParity = 8;

// A parity row of a block: its number, and its bytes, as long as a fragment.
struct ParityRow {
    std::uint32_t row = 0;
    std::byte* bytes = nullptr;
};

class ParityCode {
  public:
    explicit ParityCode(std::uint32_t fragment_bytes) : zeros_(fragment_bytes), scratch_(fragment_bytes) {}

    // Computes a parity row of a block of fragments, of which only the last may be shorter. Valid until the
    // next call.
    Bytes encode(Bytes block, std::uint32_t row);
    // Writes the missing fragments of a block into their places. `missing` is ascending and as long as
    // `rows`; the contents of the rows are destroyed.
    void restore(std::span<std::byte> block, std::span<const std::uint32_t> missing,
                 std::span<const ParityRow> rows);

  private:
    void add_up(Bytes block, std::span<const std::uint32_t> missing, std::uint32_t row, std::byte* sum);

    std::vector<std::byte> zeros_, scratch_;
    std::vector<std::byte> last_ = zeros_;  // a padded last fragment
};

}  // namespace mcastcoll::engine
