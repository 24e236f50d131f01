// A Place in a join message. What arrives is input: anything malformed is nothing, and nothing throws.
//
//     u8 version (1), u8 count, then for each coordinate, outside in:
//     u8 level; site, segment and host: u64 identity, u8 length, name; inside a host: u32 identity
#pragma once

#include <array>
#include <optional>

#include "base/types.h"
#include "topology/levels.h"

namespace mcastcoll::topology {

inline constexpr std::size_t kOuterLevels = 3;
inline constexpr std::size_t kMostPlaceBytes =
    2 + kOuterLevels * (1 + 8 + 1 + Name::kMost) + (kLevels - 1 - kOuterLevels) * (1 + 4);
static_assert(kMostPlaceBytes <= 128);

class EncodedPlace {
  public:
    Bytes bytes() const { return Bytes(bytes_).first(size_); }

  private:
    friend EncodedPlace encode(const Place& place);
    std::array<std::byte, kMostPlaceBytes> bytes_{};
    std::size_t size_ = 0;
};

EncodedPlace encode(const Place& place);
// Takes exactly the bytes of one place.
std::optional<Place> decode_place(Bytes bytes);

}  // namespace mcastcoll::topology
