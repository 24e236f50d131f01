// The fragment behind the one that came last. Most fragments are that one: a large message comes in order,
// many at a time. Such a one differs from the last in its number alone, is told by comparing bytes, and
// changes nothing but how far its message has come; so nothing else need be looked at again.
#pragma once

#include <array>
#include <cstring>

#include "engine/core.h"

namespace mcastcoll::engine {

class Successor {
  public:
    explicit Successor(Core& core) : core_(core) {}

    // This packet was looked at from all sides and has a fragment. The next one may be its successor, unless
    // it has more consequences than to be here: a report, a repair, parity, the message's end.
    void follow(const wire::Header& header, Bytes packet);
    // The operation whose fragment slot.base this is, in the same turn as the last; null: perhaps another's.
    Slot* slot_of(Bytes packet) {
        if (next_ >= end_ || packet.size() != wire::kHeaderBytes + core_.config.fragment_bytes)
            return nullptr;
        if (!looks_like_next(packet) || !in_order(*slot_)) return nullptr;
        return wire::has_right(core_.config.checksum, packet) ? slot_ : nullptr;
    }
    void take() { expect(next_ + 1); }

  private:
    // But for its checksum, and for its number and tag, which have been looked at.
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
    std::uint32_t next_ = 0, end_ = 0;                   // in between are successors
    std::array<std::byte, wire::kNumberOffset> head_{};  // of the next
};

}  // namespace mcastcoll::engine
