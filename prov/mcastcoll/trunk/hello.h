// The greeting of a trunk's stream: both sides send one hello of 200 bytes, and then, if a key is configured,
// a proof of 32 bytes that they have it; then frames follow.  What the key does to these is the gateway's
// business, here are only the fields.
//
//      0  magic "MCCT"           8  session          24  streams     40  site of the sender, 32 bytes
//      4  version               16  stream           28  window      72  site it means, 32 bytes
//      6  flags: 1 with key     20  (zero)           32  (zero)     104  nonce, 136 public key, 168 zero: 32
//      bytes each
//
// The session is a random number that a gateway draws anew when it drops the state of a trunk: a stream of
// another session tells the peer to drop its own, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "wire/types.h"

namespace mcastcoll::trunk {

inline constexpr std::uint32_t kHelloMagic = 0x4d434354;  // "MCCT"
inline constexpr std::uint16_t kHelloVersion = 1;
inline constexpr std::uint16_t kHelloWithKey = 1;
inline constexpr std::size_t kHelloSize = 200;
inline constexpr std::size_t kProofSize = 32;
inline constexpr std::size_t kSiteNameSize = 32;

using HelloBytes = std::array<std::byte, kHelloSize>;
using Secret = std::array<std::byte, 32>;

struct Hello {
    bool with_key = false;
    std::uint64_t session = 0;
    std::uint32_t stream = 0;   // which one of the trunk's this is
    std::uint32_t streams = 0;  // how many the sender wants
    std::uint32_t window = 0;   // cost of data that the sender takes of each channel before any credit
    std::string from, to;       // names of sites
    Secret nonce{}, public_key{};

    bool operator==(const Hello&) const = default;
};

HelloBytes encode_hello(const Hello& hello);
std::optional<Hello> decode_hello(Bytes bytes);

}  // namespace mcastcoll::trunk
