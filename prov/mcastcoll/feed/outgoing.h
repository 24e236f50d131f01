// What a sender keeps until all receivers have it: whole packets, by number, in a ring that is allocated
// once. Messages are packed into packets: the last one is open until it is full or closed. Packets lie one
// behind the other, so that a row of full ones can be handed to the kernel as one.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "feed/packet.h"

namespace mcastcoll::feed {

class Outgoing {
  public:
    // Packets that one call of the system sends at most; the system's own bounds are 64 and 64 KiB.
    static constexpr std::size_t kMostInRow = 44;

    // The header of all packets, but for number and oldest.
    Outgoing(std::size_t window, std::size_t payload, const Header& data);

    // Of the packets that are full or closed.
    std::uint64_t next() const { return next_; }
    std::uint64_t oldest() const { return oldest_; }
    bool empty() const { return oldest_ == next_ && !has_open(); }
    bool has_open() const { return open_ > 0; }
    // How many are closed and have never been sent.
    std::size_t waiting() const { return next_ - unsent_; }

    // Packets that may be kept at once; never more than the window.
    void limit(std::size_t packets) { limit_ = std::min(packets, places_.size()); }
    bool fits(std::size_t bytes) const;
    // The message must fit. The bytes are copied.
    void append(Bytes message);
    void close();

    // The first that have not been sent: all of `unit` bytes but the last one, which may be shorter.
    struct Row {
        Bytes bytes;
        std::size_t unit = 0, packets = 0;
    };
    Row unsent();
    void sent(const Row& row) { unsent_ += row.packets; }

    // Again, if it was sent, is kept, and was not sent again within `since`.
    Bytes again(std::uint64_t number, Nanoseconds now, Nanoseconds since);
    // All below have been received.
    void trim(std::uint64_t oldest);

  private:
    struct Place {
        std::size_t length = 0;
        Nanoseconds again{INT64_MIN / 2};
    };
    std::byte* at(std::uint64_t number) { return bytes_.get() + (number % places_.size()) * stride_; }

    const std::size_t payload_, stride_;
    const Header data_;
    std::vector<Place> places_;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t limit_;
    std::size_t open_ = 0;  // bytes in the packet behind the last closed one
    std::uint64_t next_ = 0, oldest_ = 0, unsent_ = 0;
};

}  // namespace mcastcoll::feed
