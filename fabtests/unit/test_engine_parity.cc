// Parity of blocks: any missing fragments can be restored from as many parity rows.
#include "engine/parity_code.h"
#include "engine_fixture.h"

namespace mcastcoll::engine {
namespace {

// Removes the missing fragments from a message and restores them from these parity rows.
void lose_and_restore(std::uint32_t fragment_bytes, std::size_t bytes, std::vector<std::uint32_t> missing,
                      const std::vector<std::uint32_t>& rows) {
    ParityCode code(fragment_bytes);
    const bench::ByteString sent = bench::content(bytes);
    std::vector<bench::ByteString> parity;
    std::vector<ParityRow> use;
    for (const std::uint32_t row : rows) {
        const Bytes made = code.encode(sent, row);
        parity.emplace_back(made.begin(), made.end());
    }
    for (std::size_t i = 0; i < rows.size(); ++i) use.push_back({rows[i], parity[i].data()});
    bench::ByteString got = sent;
    for (const std::uint32_t index : missing)
        std::fill_n(got.begin() + std::ptrdiff_t{index} * fragment_bytes,
                    std::min<std::size_t>(fragment_bytes, bytes - std::size_t{index} * fragment_bytes),
                    std::byte{0xaa});
    cr_assert(got != sent);
    code.restore(got, missing, use);
    cr_assert(got == sent, "%zu of %zu bytes in fragments of %u", missing.size(), bytes, fragment_bytes);
}

}  // namespace

Test(parity, any_single_fragment_comes_back_from_any_row) {
    for (std::uint32_t count : {1U, 2U, 8U, 63U, 64U})
        for (std::uint32_t index = 0; index < count; ++index)
            lose_and_restore(64, count * 64 - 5, {index}, {index % kMaxParity});
}

Test(parity, any_rows_bring_back_as_many_fragments) {
    std::uint64_t random = 1;
    const auto next = [&random](std::uint32_t below) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::uint32_t>(random >> 33) % below;
    };
    for (unsigned round = 0; round < 2000; ++round) {
        const std::uint32_t fragment = 64 + next(3) * 680, count = 8 + next(57);
        const std::size_t bytes = std::size_t{count} * fragment - next(fragment);
        std::vector<std::uint32_t> missing, rows;
        const std::uint32_t lost = 1 + next(kMaxParity);
        while (missing.size() < lost)
            if (const std::uint32_t index = next(count); std::ranges::count(missing, index) == 0)
                missing.push_back(index);
        std::ranges::sort(missing);
        while (rows.size() < lost)
            if (const std::uint32_t row = next(kMaxParity); std::ranges::count(rows, row) == 0)
                rows.push_back(row);
        lose_and_restore(fragment, bytes, missing, rows);
    }
}

}  // namespace mcastcoll::engine
