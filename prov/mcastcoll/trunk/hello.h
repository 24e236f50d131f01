// The greeting of a trunk's stream.  The connector sends a hello of 200 bytes, the acceptor its own and a
// proof of 32 bytes that it has the key, the connector its proof; then frames follow, the acceptor's first is
// a welcome.  Without a key the proofs are zero. What a key does to these is the gateway's business, here are
// only the fields.
//
//      0  magic "MCCT"     8  session      28  first window     72  site it means, 32 bytes
//      4  version         16  stream       32  peer session    104  nonce, 32 bytes
//      6  flags (1: key)  24  streams      40  site, 32 bytes  136  public key, 168 zero: 32 bytes each
//
// The session is a random number that a gateway draws anew whenever it drops the state of a trunk.  Both
// sides' states belong together if each knows the other's session:
//
//   the acceptor is bound to   the connector says        then the acceptor
//   none                       peer session 0            is bound to it
//   this session               its own session, or 0     goes on
//   another session            peer session 0            drops its state, is bound to this one
//   anything else                                        refuses: welcomes with peer session 0; the connector
//   drops its state
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/types.h"
#include "trunk/frame.h"

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
    std::uint64_t session = 0, peer_session = 0;
    std::uint32_t stream = 0;   // which one of the trunk's this is
    std::uint32_t streams = 0;  // how many the sender wants
    std::uint32_t window = 0;   // cost of data that the sender takes of each channel before any credit
    std::string from, to;       // names of sites
    Secret nonce{}, public_key{};

    bool operator==(const Hello&) const = default;
};

struct Welcome {
    std::uint64_t session = 0, peer_session = 0;
    std::uint32_t window = 0;
};

HelloBytes encode_hello(const Hello& hello);
std::optional<Hello> decode_hello(Bytes bytes);
std::array<std::byte, kWelcomeSize> encode_welcome(const Welcome& welcome);
Welcome decode_welcome(Bytes bytes);

// The table above.
enum class Binding { good, renewed, refused };
Binding bind(std::uint64_t own, std::uint64_t bound_to, const Hello& hello);

}  // namespace mcastcoll::trunk
