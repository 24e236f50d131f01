#include "reliable/incoming.h"

#include <algorithm>
#include <cassert>
#include <new>

namespace mcastcoll::reliable {
namespace {

// Memory of a packet of this length, including the allocator's overhead.
std::size_t cost_of(std::size_t bytes) {
    constexpr std::size_t kOverhead = 32;
    return bytes + kOverhead;
}

}  // namespace

Incoming::Incoming(std::size_t window, std::size_t payload, std::uint64_t start, Store& store)
    : payload_(payload), store_(store), places_(window), taken_(start), complete_(start), end_(start) {}

Incoming::~Incoming() {
    store_.give_back(kept_, kept_);
}

Put Incoming::put(std::uint64_t number, Bytes body) {
    if (number < taken_ || number - taken_ >= places_.size() || body.size() > payload_) return Put::useless;
    Place& place = places_[number % places_.size()];
    if (place.bytes) return Put::useless;
    end_ = std::max(end_, number + 1);
    const std::size_t cost = cost_of(body.size());
    if (!store_.take(kept_, cost)) return Put::no_room;
    place.bytes.reset(new (std::nothrow) std::byte[body.size()]);
    if (!place.bytes) return store_.give_back(kept_ + cost, cost), Put::no_room;
    kept_ += cost;
    place.length = body.size();
    std::copy(body.begin(), body.end(), place.bytes.get());
    return Put::taken;
}

void Incoming::clear(std::uint64_t number) {
    Place& place = places_[number % places_.size()];
    if (!place.bytes) return;
    store_.give_back(kept_, cost_of(place.length));
    kept_ -= cost_of(place.length);
    place = {};
}

void Incoming::note_end(std::uint64_t next) {
    // A sender is never more than a window ahead of a receiver.
    if (next > end_ && next - taken_ <= places_.size()) end_ = next;
}

bool Incoming::skip_to(std::uint64_t oldest) {
    if (oldest <= first_missing()) return true;
    if (begun_) return false;
    while (taken_ < oldest && taken_ < complete_ + places_.size()) clear(taken_++);
    taken_ = oldest;
    offset_ = 0;
    complete_ = oldest;
    end_ = std::max(end_, oldest);
    return true;
}

Bytes Incoming::body() const {
    assert(ready());
    const Place& place = places_[taken_ % places_.size()];
    return {place.bytes.get(), place.length};
}

void Incoming::take_piece(std::uint8_t flags, std::size_t end) {
    in_message_ = (flags & kLast) == 0;
    offset_ = end;
    begun_ = true;
}

void Incoming::take() {
    clear(taken_);
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

}  // namespace mcastcoll::reliable
