// Header prediction as in TCP (Van Jacobson). A large message arrives in order, many fragments per turn, so
// most headers differ from their predecessor only in the fragment number. Comparing bytes then replaces
// parsing, and the only effect is that one more fragment is here.
#pragma once

#include <array>
#include <cstring>

#include "engine/core.h"

namespace mcastcoll::engine {

class HeaderPrediction {
  public:
    explicit HeaderPrediction(Core& core) : core_(core) {}

    // Called after a packet took the slow path. Predicts the next header, unless more work is due: a report,
    // a hole, a repair, parity, the end of the message.
    void predict_after(const wire::Header& header, Bytes packet);
    // Returns the slot of the predicted operation if the packet is the first fragment that the operation
    // lacks and was received at the same time as the packet before. Null if the prediction fails.
    Slot* match(Bytes packet) {
        if (next_ >= end_ || packet.size() != wire::kHeaderBytes + core_.config.fragment_bytes)
            return nullptr;
        if (!looks_like_next(packet) || !in_order(*slot_)) return nullptr;
        return wire::has_right_checksum(packet, core_.config.checksum) ? slot_ : nullptr;
    }
    // The matched packet has been stored.
    void advance() { expect(next_ + 1); }

  private:
    // Compares all but the checksum; the tag has been checked by the caller.
    bool looks_like_next(Bytes packet) const {
        constexpr std::size_t kBehind = wire::kGroupKeyOffset;
        return std::memcmp(packet.data(), head_.data(), wire::kCrcOffset) == 0 &&
               std::memcmp(packet.data() + kBehind, head_.data() + kBehind, head_.size() - kBehind) == 0;
    }
    bool in_order(const Slot& slot) const;
    void expect(std::uint32_t index);

    Core& core_;
    Slot* slot_ = nullptr;
    OperationId operation_{};
    Nanoseconds turn_{};
    std::uint32_t next_ = 0, end_ = 0;                   // fragments in [next_, end_) can match
    std::array<std::byte, wire::kNumberOffset> head_{};  // of the next packet
};

}  // namespace mcastcoll::engine
