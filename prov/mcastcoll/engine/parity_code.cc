#include "engine/parity_code.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace mcastcoll::engine {
namespace {

// Size of isa-l's table for one coefficient.
constexpr std::size_t kTableBytes = 32;

unsigned char* raw(const std::byte* bytes) {
    return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes));
}

// Rows and fragments have distinct numbers; a coefficient is the inverse of their sum in GF(256).
unsigned char coefficient(std::uint32_t row, std::uint32_t fragment) {
    return gf_inv(static_cast<unsigned char>((kBlockFragments + row) ^ fragment));
}
static_assert(kBlockFragments + kMaxParity <= 256);

using Row = std::array<unsigned char, kTableBytes * kBlockFragments>;
// Returns a row's table of coefficients in isa-l's form. A block of fewer fragments uses its beginning.
const Row& table_of(std::uint32_t row) {
    static const auto all = [] {
        std::array<Row, kMaxParity> rows{};
        for (std::uint32_t at = 0; at < kMaxParity; ++at) {
            std::array<unsigned char, kBlockFragments> coefficients{};
            for (std::uint32_t i = 0; i < kBlockFragments; ++i) coefficients[i] = coefficient(at, i);
            ec_init_tables(kBlockFragments, 1, coefficients.data(), rows[at].data());
        }
        return rows;
    }();
    return all[row];
}

// Computes the sum of `count` sources, each as long as a fragment, multiplied by the coefficients in the
// table.
void multiply(std::size_t bytes, std::size_t count, const unsigned char* table, unsigned char** from,
              std::byte* to) {
    unsigned char* result = raw(to);
    ec_encode_data(static_cast<int>(bytes), static_cast<int>(count), 1, const_cast<unsigned char*>(table),
                   from, &result);
}

}  // namespace

// Computes a row over the fragments that are here; missing ones count as zeros.
void ParityCode::add_up(Bytes block, std::span<const std::uint32_t> missing, std::uint32_t row,
                        std::byte* sum) {
    const std::size_t size = zeros_.size(), count = (block.size() + size - 1) / size;
    assert(count > 0 && count <= kBlockFragments && row < kMaxParity);
    std::array<unsigned char*, kBlockFragments> from{};
    for (std::size_t i = 0; i < count; ++i) from[i] = raw(block.data() + i * size);
    if (const std::size_t rest = block.size() % size; rest != 0) {
        std::memcpy(last_.data(), block.data() + (count - 1) * size, rest);
        std::fill(last_.begin() + static_cast<std::ptrdiff_t>(rest), last_.end(), std::byte{});
        from[count - 1] = raw(last_.data());
    }
    for (const std::uint32_t index : missing) from[index] = raw(zeros_.data());
    multiply(size, count, table_of(row).data(), from.data(), sum);
}

Bytes ParityCode::encode(Bytes block, std::uint32_t row) {
    add_up(block, {}, row, scratch_.data());
    return scratch_;
}

// Each received row minus the contribution of the present fragments is a sum of the missing fragments alone:
// as many equations as unknowns.
void ParityCode::restore(std::span<std::byte> block, std::span<const std::uint32_t> missing,
                         std::span<const ParityRow> rows) {
    const std::size_t size = zeros_.size(), count = missing.size();
    assert(count > 0 && count <= kMaxParity && rows.size() == count);
    std::array<unsigned char, kMaxParity * kMaxParity> matrix{}, inverse{};
    std::array<unsigned char*, kMaxParity> sums{};
    for (std::size_t i = 0; i < count; ++i) {
        add_up(block, missing, rows[i].row, scratch_.data());
        for (std::size_t at = 0; at < size; ++at) rows[i].bytes[at] ^= scratch_[at];
        sums[i] = raw(rows[i].bytes);
        for (std::size_t j = 0; j < count; ++j) matrix[i * count + j] = coefficient(rows[i].row, missing[j]);
    }
    [[maybe_unused]] const int singular =
        gf_invert_matrix(matrix.data(), inverse.data(), static_cast<int>(count));
    assert(singular == 0);
    std::array<unsigned char, kTableBytes * kMaxParity> table{};
    for (std::size_t j = 0; j < count; ++j) {
        ec_init_tables(static_cast<int>(count), 1, inverse.data() + j * count, table.data());
        multiply(size, count, table.data(), sums.data(), scratch_.data());
        const std::size_t at = missing[j] * size;
        std::memcpy(block.data() + at, scratch_.data(), std::min(size, block.size() - at));
    }
}

}  // namespace mcastcoll::engine
