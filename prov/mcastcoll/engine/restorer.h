// Restores lost fragments from parity instead of NAKs: keeps parity rows until their block lacks no more
// fragments than there are rows.
#pragma once

#include "engine/core.h"
#include "engine/parity_code.h"

namespace mcastcoll::engine {

class Restorer {
  public:
    explicit Restorer(Core& core);

    // Fragments that the last call restored, in order.
    std::span<const std::uint32_t> restored() const { return {missing_.data(), restored_}; }
    // A row of the block that begins at `first` has arrived. Returns true if fragments were restored.
    bool take(Slot& slot, std::uint32_t first, std::uint32_t row, Bytes parity);
    // A fragment has arrived. Returns true if the kept rows then restored other fragments.
    bool on_fragment(Slot& slot, std::uint32_t index) {
        return slot.parity_rows > 0 && try_restore(slot, index - index % kBlockFragments);
    }
    // Frees the rows of a message.
    void forget(Slot& slot) {
        if (slot.parity_rows > 0) drop_rows(slot, kWholeMessage);
    }

  private:
    static constexpr std::uint32_t kWholeMessage = UINT32_MAX;
    struct Kept {
        OperationId operation{};
        std::uint32_t first = 0;  // first fragment of the block
        ParityRow row;
    };

    bool try_restore(Slot& slot, std::uint32_t first);
    std::byte* begin_of(Slot& slot, std::uint32_t first, std::uint32_t count);
    bool keep(Slot& slot, std::uint32_t first, std::uint32_t row, Bytes parity);
    void drop_rows(Slot& slot, std::uint32_t first);

    Core& core_;
    ParityCode code_;
    Pool memory_;
    std::vector<Kept> kept_;  // in order of arrival
    std::array<std::uint32_t, kMaxParity> missing_{};
    std::size_t restored_ = 0;
};

}  // namespace mcastcoll::engine
