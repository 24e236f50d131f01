#include "reliable/outgoing.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::reliable {
namespace {

constexpr std::size_t kMaxBytesInRow = 65000;

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
        // A piece needs room for at least one byte of the message, unless the message is empty.
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

}  // namespace mcastcoll::reliable
