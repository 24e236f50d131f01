#include "feed/outgoing.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::feed {

Outgoing::Outgoing(std::size_t window, std::size_t payload)
    : stride_(kHeaderBytes + payload), places_(window), bytes_(window * stride_) {}

Bytes Outgoing::put(Header header, Bytes body, Nanoseconds now) {
    assert(next_ - oldest_ < places_.size() && kHeaderBytes + body.size() <= stride_);
    header.number = next_;
    header.oldest = oldest_;
    std::byte* to = at(next_);
    const auto front = encode(header);
    std::copy(front.begin(), front.end(), to);
    std::copy(body.begin(), body.end(), to + kHeaderBytes);
    places_[next_ % places_.size()] = {kHeaderBytes + body.size(), now};
    ++next_;
    return {to, kHeaderBytes + body.size()};
}

Bytes Outgoing::again(std::uint64_t number, Nanoseconds now, Nanoseconds since) {
    if (number < oldest_ || number >= next_) return {};
    Place& place = places_[number % places_.size()];
    if (now - place.sent < since) return {};
    place.sent = now;
    wire::put(at(number) + 40, oldest_);
    return {at(number), place.length};
}

void Outgoing::trim(std::uint64_t oldest) {
    if (oldest > oldest_ && oldest <= next_) oldest_ = oldest;
}

}  // namespace mcastcoll::feed
