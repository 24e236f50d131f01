// What a sender keeps until all receivers have it: whole packets, by number, in a ring that is allocated
// once.
#pragma once

#include <vector>

#include "feed/packet.h"

namespace mcastcoll::feed {

class Outgoing {
  public:
    Outgoing(std::size_t window, std::size_t payload);

    std::uint64_t next() const { return next_; }
    std::uint64_t oldest() const { return oldest_; }
    bool empty() const { return oldest_ == next_; }
    std::size_t window() const { return places_.size(); }

    // The window must have room. The header's number and oldest are filled in. The bytes stay until trimmed.
    Bytes put(Header header, Bytes body, Nanoseconds now);
    // Again, if it is kept, and was not sent within `since`.
    Bytes again(std::uint64_t number, Nanoseconds now, Nanoseconds since);
    // All below have been received.
    void trim(std::uint64_t oldest);

  private:
    struct Place {
        std::size_t length = 0;
        Nanoseconds sent;
    };
    std::byte* at(std::uint64_t number) { return bytes_.data() + (number % places_.size()) * stride_; }

    const std::size_t stride_;
    std::vector<Place> places_;
    std::vector<std::byte> bytes_;
    std::uint64_t next_ = 0, oldest_ = 0;
};

}  // namespace mcastcoll::feed
