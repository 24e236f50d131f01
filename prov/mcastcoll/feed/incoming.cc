#include "feed/incoming.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::feed {

Incoming::Incoming(std::size_t window, std::size_t payload, std::uint64_t start)
    : payload_(payload),
      places_(window),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(window * payload)),
      taken_(start),
      complete_(start),
      end_(start) {}

bool Incoming::put(std::uint64_t number, Bytes body) {
    if (number < taken_ || number - taken_ >= places_.size() || body.size() > payload_) return false;
    Place& place = places_[number % places_.size()];
    if (place.here) return false;
    place = {true, body.size()};
    std::copy(body.begin(), body.end(), bytes_.get() + (number % places_.size()) * payload_);
    end_ = std::max(end_, number + 1);
    return true;
}

void Incoming::note_end(std::uint64_t next) {
    // A sender never is a window ahead of who it waits for.
    if (next > end_ && next - taken_ <= places_.size()) end_ = next;
}

bool Incoming::skip_to(std::uint64_t oldest) {
    if (oldest <= first_missing()) return true;
    if (begun_) return false;
    while (taken_ < oldest && taken_ < complete_ + places_.size())
        places_[taken_++ % places_.size()].here = false;
    taken_ = oldest;
    offset_ = 0;
    complete_ = oldest;
    end_ = std::max(end_, oldest);
    return true;
}

Bytes Incoming::body() const {
    assert(ready());
    return {bytes_.get() + (taken_ % places_.size()) * payload_, places_[taken_ % places_.size()].length};
}

void Incoming::take_piece(std::uint8_t flags, std::size_t end) {
    in_message_ = (flags & kLast) == 0;
    offset_ = end;
    begun_ = true;
}

void Incoming::take() {
    places_[taken_ % places_.size()].here = false;
    offset_ = 0;
    ++taken_;
    end_ = std::max(end_, taken_);
    begun_ = true;
}

std::uint64_t Incoming::first_missing() {
    complete_ = std::max(complete_, taken_);
    while (complete_ < end_ && present(complete_)) ++complete_;
    return complete_;
}

std::size_t Incoming::missing(MutableBytes bitmap) {
    std::fill(bitmap.begin(), bitmap.end(), std::byte{0});
    const std::uint64_t from = first_missing();
    std::size_t used = 0;
    for (std::uint64_t number = from; number < end_ && number - from < 8 * bitmap.size(); ++number) {
        if (present(number)) continue;
        const std::size_t bit = number - from;
        bitmap[bit / 8] |= std::byte{1} << (bit % 8);
        used = bit / 8 + 1;
    }
    return used;
}

}  // namespace mcastcoll::feed
