// Lost fragments that are computed instead of asked for: rows of parity are kept until as few of their
// block's fragments are missing as there are rows.
#pragma once

#include "engine/core.h"
#include "engine/parity.h"

namespace mcastcoll::engine {

class Restorer {
  public:
    explicit Restorer(Core& core);

    // The fragments that were put into their places just now, in order.
    std::span<const std::uint32_t> restored() const { return {missing_.data(), restored_}; }
    // A row has come of the block that begins with this fragment. True: that restored something.
    bool take(Slot& slot, std::uint32_t first, std::uint32_t row, Bytes parity);
    // A fragment has come otherwise. True: with it the rows that are kept restored the others.
    bool on_fragment(Slot& slot, std::uint32_t index) {
        return slot.parity_rows > 0 && try_restore(slot, index - index % kBlockFragments);
    }
    // Its rows are of no use any more.
    void forget(Slot& slot) {
        if (slot.parity_rows > 0) drop_rows(slot, kWholeMessage);
    }

  private:
    static constexpr std::uint32_t kWholeMessage = UINT32_MAX;
    struct Kept {
        OperationId operation{};
        std::uint32_t first = 0;  // fragment of the block
        ParityRow row;
    };

    bool try_restore(Slot& slot, std::uint32_t first);
    std::byte* begin_of(Slot& slot, std::uint32_t first, std::uint32_t count);
    bool keep(Slot& slot, std::uint32_t first, std::uint32_t row, Bytes parity);
    void drop_rows(Slot& slot, std::uint32_t first);

    Core& core_;
    ParityCode code_;
    Pool memory_;
    std::vector<Kept> kept_;  // in the order in which they came
    std::array<std::uint32_t, kMostParity> missing_{};
    std::size_t restored_ = 0;
};

}  // namespace mcastcoll::engine
