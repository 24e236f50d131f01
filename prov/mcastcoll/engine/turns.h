// Which operations may have something to send, and whose turn it is: operations pass each other freely, and a
// long broadcast does not hold up a short one.
#pragma once

#include <cstdint>

#include "base/bitmap.h"

namespace mcastcoll::engine {

class Turns {
  public:
    // What an operation does with its turn.
    enum class Use : std::uint8_t { sent, waits, idle };  // idle: it has nothing to send until it is marked

    // slots: a power of two, as many operations as there may be at a time.
    explicit Turns(std::uint32_t slots) : marked_(slots) {}

    void mark(std::uint64_t operation) {
        marked_.set(static_cast<std::uint32_t>(operation % marked_.capacity()));
    }
    // Offers its turn to each in order, by a number that is its operation's modulo the slots, until one
    // sends.
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
    std::uint32_t turn_ = 0;  // whose it is
};

}  // namespace mcastcoll::engine
