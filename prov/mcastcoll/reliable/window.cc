#include "reliable/window.h"

#include <cassert>
#include <new>

namespace mcastcoll::reliable {
namespace {

constexpr std::size_t kMaxBytesInRow = 65000;

// Memory of a packet of this length, including the allocator's overhead.
std::size_t cost_of(std::size_t bytes) {
    constexpr std::size_t kOverhead = 32;
    return bytes + kOverhead;
}

}  // namespace

Outgoing::Outgoing(std::size_t window, std::size_t payload, const Header& data, Proof& proof)
    : payload_(payload),
      stride_(kHeaderBytes + payload),
      data_(data),
      proof_(proof),
      places_(window),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(window * stride_)),
      limit_(window) {}

bool Outgoing::fits(std::size_t bytes) const {
    if (has_open() && open_ + kPieceHeader + bytes <= payload_) return true;
    const std::size_t used = next_ - oldest_ + (has_open() ? 1 : 0);
    const std::size_t max_of_piece = payload_ - kPieceHeader;
    const std::size_t packets = std::max<std::size_t>(1, (bytes + max_of_piece - 1) / max_of_piece);
    return used + packets <= limit_;
}

void Outgoing::append(Bytes message) {
    std::uint8_t first = kFirst;
    bool more = true;
    while (more) {
        const std::size_t room = payload_ - open_;
        // Room for at least one byte of the message, if any.
        if (room < kPieceHeader + (message.empty() ? 0 : 1)) {
            std::fill_n(at(next_) + kHeaderBytes + open_, room, std::byte{0});
            open_ = payload_;
            close();
            continue;
        }
        assert(next_ - oldest_ < places_.size());
        const std::size_t size = std::min(room - kPieceHeader, message.size());
        more = size < message.size();
        std::byte* to = at(next_) + kHeaderBytes + open_;
        put_piece(to, static_cast<std::uint8_t>(first | (more ? 0 : kLast)), size);
        std::copy_n(message.begin(), size, to + kPieceHeader);
        open_ += kPieceHeader + size;
        message = message.subspan(size);
        first = 0;
        if (open_ == payload_) close();
    }
}

void Outgoing::close() {
    if (!has_open()) return;
    Header header = data_;
    header.number = next_;
    header.oldest = oldest_;
    header.size = static_cast<std::uint16_t>(std::min<std::size_t>(limit_, UINT16_MAX));
    header.serial = Proof::serial_of_data(next_);
    const auto front = encode(header);
    std::copy(front.begin(), front.end(), at(next_));
    proof_.stamp({at(next_), kHeaderBytes + open_});
    places_[next_ % places_.size()] = Place{.length = kHeaderBytes + open_};
    open_ = 0;
    ++next_;
}

Outgoing::Row Outgoing::unsent() {
    if (unsent_ == next_) return {};
    Row row{{}, places_[unsent_ % places_.size()].length, 1};
    std::size_t bytes = row.unit;
    // Only full packets are contiguous.
    while (row.unit == stride_ && bytes == row.packets * stride_ && row.packets < kMaxInRow &&
           unsent_ + row.packets < next_ && (unsent_ + row.packets) % places_.size() != 0) {
        const std::size_t length = places_[(unsent_ + row.packets) % places_.size()].length;
        if (bytes + length > kMaxBytesInRow) break;
        bytes += length;
        ++row.packets;
    }
    row.bytes = {at(unsent_), bytes};
    return row;
}

Bytes Outgoing::again(std::uint64_t number, Nanoseconds now, Nanoseconds since) {
    if (number < oldest_ || number >= unsent_) return {};
    Place& place = places_[number % places_.size()];
    if (now - place.again < since) return {};
    place.again = now;
    return {at(number), place.length};
}

void Outgoing::trim(std::uint64_t oldest) {
    oldest_ = std::max(oldest_, std::min(oldest, unsent_));
}

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
