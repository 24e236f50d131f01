// The hello of a stream. The connector sends a hello of 104 bytes, the acceptor answers with a welcome frame,
// and other frames follow in both directions. Encryption of a stream, if any, starts before the hello and
// belongs to the gateway.
//
//      0  magic "MCCT"     8  session          24  stream          36  zero, 4 bytes
//      4  version         16  peer session     28  streams         40  site of the connector, 32 bytes
//      6  zero, 2 bytes                        32  first window    72  site of the acceptor, 32 bytes
//
// The session is a random number that a gateway draws whenever it drops its `Session` state. The states of
// both sides match if each side knows the other's session:
//
//   acceptor is bound to   peer session field    result
//   none                   0                     the acceptor binds to the hello's session
//   the hello's session    acceptor's, or 0      the session continues
//   another session        0                     the acceptor drops its state and binds to that session
//   any other case                               refused: welcome with peer session 0, and the connector
//                                                drops its state
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/types.h"
#include "gateway/session/frame.h"

namespace mcastcoll::gateway::session {

inline constexpr std::uint32_t kHelloMagic = 0x4d434354;  // "MCCT"
inline constexpr std::uint16_t kHelloVersion = 2;
inline constexpr std::size_t kHelloSize = 104;
inline constexpr std::size_t kSiteNameSize = 32;

using HelloBytes = std::array<std::byte, kHelloSize>;

struct Hello {
    std::uint64_t session = 0, peer_session = 0;
    std::uint32_t stream = 0;   // index of this stream
    std::uint32_t streams = 0;  // number of streams that the sender wants
    std::uint32_t window = 0;   // cost of data that the sender accepts on each channel before any credit
    std::string from, to;       // site names

    bool operator==(const Hello&) const = default;
};

struct Welcome {
    std::uint64_t session = 0, peer_session = 0;
    std::uint32_t window = 0;
};

HelloBytes encode_hello(const Hello& hello);
std::optional<Hello> decode_hello(Bytes bytes);
// The version field of a hello of any version.
std::uint16_t version_of_hello(Bytes bytes);
std::array<std::byte, kWelcomeSize> encode_welcome(const Welcome& welcome);
Welcome decode_welcome(Bytes bytes);

enum class Binding { good, renewed, refused };
// Compares the acceptor's state with a hello, by the table at the head of this file.
Binding bind(std::uint64_t own, std::uint64_t bound_to, const Hello& hello);

}  // namespace mcastcoll::gateway::session
