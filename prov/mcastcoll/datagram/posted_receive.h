// A posted receive, and messages in pieces as the application passes them.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace mcastcoll::datagram {

inline constexpr std::size_t kMaxPieces = 4;

// A message in pieces, as the application passes it.
using Pieces = std::span<const iovec>;
inline bool are_valid(Pieces pieces) {
    return pieces.size() <= kMaxPieces && (pieces.empty() || pieces.data() != nullptr);
}
std::size_t size_of(Pieces pieces);
// Copies bytes to offset `at` of a message's buffer, as far as they fit.
void scatter(Pieces buffer, std::size_t at, Bytes bytes);
// Returns a message in one piece, in `copy` if necessary.
Bytes gather(Pieces pieces, std::vector<std::byte>& copy);

struct PostedReceive {
    void* context = nullptr;
    std::uint64_t flags = 0;
    std::array<iovec, kMaxPieces> pieces{};
    std::size_t count = 0;

    Pieces buffer() const { return Pieces(pieces).first(count); }
};

}  // namespace mcastcoll::datagram
