// What a receiver has of one sender: packets in any order within a window, taken out in the order of their
// numbers. The ring is allocated once.
#pragma once

#include <memory>
#include <vector>

#include "feed/packet.h"

namespace mcastcoll::feed {

class Incoming {
  public:
    // The first number that counts; until something is taken, skip_to() may move it.
    Incoming(std::size_t window, std::size_t payload, std::uint64_t start);

    // False: it is here already, or outside the window.
    bool put(std::uint64_t number, Bytes body);
    // The sender has sent everything below.
    void note_end(std::uint64_t next);
    // What is below can no longer be had. False: something of it is missing, and something was taken already.
    bool skip_to(std::uint64_t oldest);

    // The next packet, and how much of it has been taken.
    bool ready() const { return present(taken_); }
    Bytes body() const;
    std::size_t offset() const { return offset_; }
    // A piece was taken, which reaches to this offset.
    void take_piece(std::uint8_t flags, std::size_t end);
    // Nothing is left in the next packet, whether it was ever put here or not.
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
        std::size_t length = 0;
    };
    bool present(std::uint64_t number) const {
        return number < taken_ + places_.size() && places_[number % places_.size()].here;
    }

    const std::size_t payload_;
    std::vector<Place> places_;
    // Not touched, and so not there, unless something must be kept.
    std::unique_ptr<std::byte[]> bytes_;
    std::uint64_t taken_, complete_, end_;
    std::size_t offset_ = 0;
    bool begun_ = false, in_message_ = false;
};

}  // namespace mcastcoll::feed
