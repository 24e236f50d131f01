// Stores packets that arrive from one sender in any order within a window, and returns them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "reliable/proof.h"
#include "reliable/store.h"

namespace mcastcoll::reliable {

enum class Put : std::uint8_t {
    taken,
    useless,  // a duplicate, or outside the window
    no_room,  // not stored: counts as missing
};

class Incoming {
  public:
    // start: first expected number; skip_to() may change the start until a piece is taken. The store must
    // outlive this object.
    Incoming(std::size_t window, std::size_t payload, std::uint64_t start, Store& store);
    ~Incoming();
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    Put put(std::uint64_t number, Bytes body);
    // The sender has sent all packets below `next`.
    void note_end(std::uint64_t next);
    // The sender no longer has packets below `oldest`. Returns false if such a packet is missing here and a
    // piece was taken already.
    bool skip_to(std::uint64_t oldest);

    // Whether the next packet in order is here.
    bool ready() const { return present(taken_); }
    // The body of the next packet; requires ready().
    Bytes body() const;
    // Offset in the next packet's body up to which pieces were taken.
    std::size_t offset() const { return offset_; }
    // A piece that ends at this offset was taken.
    void take_piece(std::uint8_t flags, std::size_t end);
    // Ends the next packet, stored here or not.
    void take();

    // The last piece taken did not end a message.
    bool in_message() const { return in_message_; }
    std::uint64_t taken() const { return taken_; }
    // The first missing packet: all below are here or taken.
    std::uint64_t first_missing();
    bool has_gap() { return first_missing() < end_; }
    // Fills the bitmap from first_missing() on; returns its length in bytes.
    std::size_t missing(MutableBytes bitmap);

  private:
    struct Place {
        std::unique_ptr<std::byte[]> bytes;  // null: missing
        std::size_t length = 0;
    };
    bool present(std::uint64_t number) const {
        return number < taken_ + places_.size() && places_[number % places_.size()].bytes;
    }
    void clear(std::uint64_t number);

    const std::size_t payload_;
    Store& store_;
    std::size_t kept_ = 0;  // bytes
    std::vector<Place> places_;
    // Packets below taken_ were taken; packets below complete_ are here or taken; packets from end_ on are
    // not known to exist.
    std::uint64_t taken_, complete_, end_;
    std::size_t offset_ = 0;
    bool begun_ = false, in_message_ = false;
};

}  // namespace mcastcoll::reliable
