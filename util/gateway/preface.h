// The preface: 64 bytes before a connection's own data, between a process and its site's gateway, and again
// between the other site's gateway and the target process. It names source and target, and is not answered.
//
//      0  magic "MCCR"       8  source: family, port, address     48  source node
//      4  version            (2, 2 and 16 bytes)                 52  source process
//      6  flags (0)          28  target: the same                56  zero, 8 bytes
//
// All in network byte order; the layout is in the constants below.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "sites/endpoint.h"
#include "wire/bytes.h"

namespace mcastcoll::gateway {

inline constexpr std::uint32_t kPrefaceMagic = 0x4d434352;  // "MCCR"
inline constexpr std::uint16_t kPrefaceVersion = 1;
inline constexpr std::size_t kPrefaceSize = 64;

struct Preface {
    sites::Endpoint source;  // of the connecting process, as the target would see it without gateways
    sites::Endpoint target;  // the address to connect to
    std::uint32_t node = 0;  // of the source: distinguishes the hosts of its site
    std::uint32_t process = 0;

    bool operator==(const Preface&) const = default;
};

namespace preface_layout {
inline constexpr std::size_t kVersion = 4, kSource = 8, kTarget = 28, kNode = 48, kProcess = 52, kZero = 56;
static_assert(kZero + 8 == kPrefaceSize);

inline void put_endpoint(std::byte* at, const sites::Endpoint& endpoint) {
    wire::put(at, static_cast<std::uint16_t>(endpoint.family));
    wire::put(at + 2, endpoint.port);
    std::copy(endpoint.address.begin(), endpoint.address.end(), at + 4);
}

inline sites::Endpoint get_endpoint(const std::byte* at) {
    sites::Endpoint endpoint;
    endpoint.family = static_cast<sites::Family>(wire::get<std::uint16_t>(at));
    endpoint.port = wire::get<std::uint16_t>(at + 2);
    std::copy_n(at + 4, endpoint.address.size(), endpoint.address.begin());
    return endpoint;
}
}  // namespace preface_layout

inline std::array<std::byte, kPrefaceSize> encode_preface(const Preface& preface) {
    namespace layout = preface_layout;
    std::array<std::byte, kPrefaceSize> bytes{};
    wire::put(bytes.data(), kPrefaceMagic);
    wire::put(bytes.data() + layout::kVersion, kPrefaceVersion);
    layout::put_endpoint(bytes.data() + layout::kSource, preface.source);
    layout::put_endpoint(bytes.data() + layout::kTarget, preface.target);
    wire::put(bytes.data() + layout::kNode, preface.node);
    wire::put(bytes.data() + layout::kProcess, preface.process);
    return bytes;
}

// Returns nothing if the bytes are no preface of this version, or name no address to connect to.
inline std::optional<Preface> decode_preface(std::span<const std::byte> bytes) {
    namespace layout = preface_layout;
    if (bytes.size() < kPrefaceSize || wire::get<std::uint32_t>(bytes.data()) != kPrefaceMagic ||
        wire::get<std::uint16_t>(bytes.data() + layout::kVersion) != kPrefaceVersion)
        return std::nullopt;
    Preface preface;
    preface.source = layout::get_endpoint(bytes.data() + layout::kSource);
    preface.target = layout::get_endpoint(bytes.data() + layout::kTarget);
    preface.node = wire::get<std::uint32_t>(bytes.data() + layout::kNode);
    preface.process = wire::get<std::uint32_t>(bytes.data() + layout::kProcess);
    const auto zero = bytes.subspan(layout::kZero, 8);
    if (!preface.source.valid() || !preface.target.valid() || preface.target.port == 0 ||
        std::any_of(zero.begin(), zero.end(), [](std::byte one) { return one != std::byte{0}; }))
        return std::nullopt;
    return preface;
}

}  // namespace mcastcoll::gateway
