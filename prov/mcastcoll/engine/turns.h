// Operations with packets or messages to send, and the order of their turns. Operations pass each other
// freely: a long broadcast does not hold up a short broadcast.
#pragma once

#include <cstdint>

#include "base/window_bitmap.h"

namespace mcastcoll::engine {

class Turns {
  public:
    // Result of an operation's turn. Idle: no turn until the operation is marked.
    enum class Use : std::uint8_t { sent, waits, idle };

    // slots: a power of two, the largest number of open operations.
    explicit Turns(std::uint32_t slots) : marked_(slots) {}

    void mark(std::uint64_t operation) {
        marked_.set(static_cast<std::uint32_t>(operation % marked_.capacity()));
    }
    // Offers a turn to each marked operation, beginning after the operation that sent last, until an
    // operation sends. Clears the mark of an idle operation. Returns false if no operation sends.
    template <typename Offer>
    bool next(Offer offer) {
        const std::uint32_t bits = marked_.capacity();  // a multiple of the slots
        for (std::uint32_t at = marked_.find_set(turn_, turn_ + bits); at < turn_ + bits;
             at = marked_.find_set(at + 1, turn_ + bits)) {
            const Use use = offer(at);
            if (use == Use::sent) return turn_ = (at + 1) % bits, true;
            if (use == Use::idle) marked_.clear(at);
        }
        return false;
    }

  private:
    WindowBitmap marked_;     // by operation, modulo its size
    std::uint32_t turn_ = 0;  // next operation
};

}  // namespace mcastcoll::engine
