// Header prediction, as TCP has it (Van Jacobson): most fragments are the one behind the last, since a large
// message comes in order, many at a time. Such a header differs from the last in the fragment's number alone,
// so comparing bytes suffices, and it changes nothing but how far its message has come.
#pragma once

#include <array>
#include <cstring>

#include "engine/core.h"

namespace mcastcoll::engine {

class HeaderPrediction {
  public:
    explicit HeaderPrediction(Core& core) : core_(core) {}

    // This packet took the slow path. Predicts the next, unless that has more consequences than to be here: a
    // report, a repair, parity, the message's end.
    void predict_after(const wire::Header& header, Bytes packet);
    // The operation whose fragment slot.base this is, in the same turn as the last; null: not as predicted.
    Slot* match(Bytes packet) {
        if (next_ >= end_ || packet.size() != wire::kHeaderBytes + core_.config.fragment_bytes)
            return nullptr;
        if (!looks_like_next(packet) || !in_order(*slot_)) return nullptr;
        return wire::has_right_checksum(packet, core_.config.checksum) ? slot_ : nullptr;
    }
    // The last match has been stored.
    void advance() { expect(next_ + 1); }

  private:
    // But for its checksum; its tag has been checked.
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
    std::uint32_t next_ = 0, end_ = 0;                   // fragments in between match
    std::array<std::byte, wire::kNumberOffset> head_{};  // that the next one has
};

}  // namespace mcastcoll::engine
