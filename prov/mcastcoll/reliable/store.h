// Memory limit for out-of-order packets of all senders: half of the memory is divided evenly, and the rest is
// first come, first served.
#pragma once

#include <cstddef>

namespace mcastcoll::reliable {

class Store {
  public:
    Store(std::size_t bytes, std::size_t senders) : share_(bytes / 2 / senders), left_(bytes / 2) {}

    // Takes memory for a packet of a sender that has `own` bytes already; false if too little is left.
    bool take(std::size_t own, std::size_t bytes) {
        const std::size_t more = beyond(own + bytes) - beyond(own);
        if (more > left_) return false;
        left_ -= more;
        return true;
    }
    // Gives back `bytes` of the `own` bytes that a sender has.
    void give_back(std::size_t own, std::size_t bytes) { left_ += beyond(own) - beyond(own - bytes); }
    // Bytes left beyond the shares.
    std::size_t left() const { return left_; }

  private:
    std::size_t beyond(std::size_t own) const { return own > share_ ? own - share_ : 0; }

    const std::size_t share_;
    std::size_t left_;
};

}  // namespace mcastcoll::reliable
