// What a receiver has of one sender: packets in any order within a window, taken out in the order of their
// numbers. The ring is allocated once.
#pragma once

#include <vector>

#include "feed/packet.h"

namespace mcastcoll::feed {

class Incoming {
  public:
    // The first number that counts; until something is taken, skip_to() may move it.
    Incoming(std::size_t window, std::size_t payload, std::uint64_t start);

    // False: it is here already, or outside the window.
    bool put(std::uint64_t number, std::uint8_t flags, Bytes body);
    // The sender has sent everything below.
    void note_end(std::uint64_t next);
    // What is below can no longer be had. False: something of it is missing, and something was taken already.
    bool skip_to(std::uint64_t oldest);

    bool ready() const { return present(taken_); }
    std::uint8_t flags() const { return places_[taken_ % places_.size()].flags; }
    Bytes body() const;
    void take();

    // The last piece taken was not the end of a message.
    bool in_message() const { return in_message_; }
    std::uint64_t taken() const { return taken_; }
    // The first that is missing: everything below is here or taken.
    std::uint64_t first_missing();
    bool has_gap() { return first_missing() < end_; }
    // Fills the bitmap from first_missing() on; returns how many bytes of it count.
    std::size_t missing(MutableBytes bitmap);

  private:
    struct Place {
        bool here = false;
        std::uint8_t flags = 0;
        std::size_t length = 0;
    };
    bool present(std::uint64_t number) const {
        return number < taken_ + places_.size() && places_[number % places_.size()].here;
    }

    const std::size_t payload_;
    std::vector<Place> places_;
    std::vector<std::byte> bytes_;
    std::uint64_t taken_, complete_, end_;
    bool begun_ = false, in_message_ = false;
};

}  // namespace mcastcoll::feed
