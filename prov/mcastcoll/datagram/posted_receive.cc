#include "datagram/posted_receive.h"

#include <algorithm>
#include <cstring>

namespace mcastcoll::datagram {

std::size_t size_of(Pieces pieces) {
    std::size_t bytes = 0;
    for (const iovec& piece : pieces) bytes += piece.iov_len;
    return bytes;
}

void scatter(Pieces buffer, std::size_t at, Bytes bytes) {
    for (const iovec& into : buffer) {
        if (at >= into.iov_len) {
            at -= into.iov_len;
            continue;
        }
        const std::size_t size = std::min(bytes.size(), into.iov_len - at);
        if (size == 0) return;
        std::memcpy(static_cast<std::byte*>(into.iov_base) + at, bytes.data(), size);
        bytes = bytes.subspan(size);
        at = 0;
    }
}

Bytes gather(Pieces pieces, std::vector<std::byte>& copy) {
    const auto bytes_of = [](const iovec& piece) {
        return Bytes(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    };
    if (pieces.size() == 1) return bytes_of(pieces.front());
    copy.clear();
    for (const iovec& piece : pieces) copy.insert(copy.end(), bytes_of(piece).begin(), bytes_of(piece).end());
    return copy;
}

}  // namespace mcastcoll::datagram
