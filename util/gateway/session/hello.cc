#include "gateway/session/hello.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include "wire/bytes.h"

namespace mcastcoll::gateway::session {
namespace {

constexpr std::size_t kVersion = 4, kZero = 6, kSession = 8, kPeerSession = 16, kStream = 24, kStreams = 28,
                      kWindow = 32, kMoreZero = 36, kFrom = 40, kTo = 72;
static_assert(kTo + kSiteNameSize == kHelloSize);

void put_name(std::byte* at, const std::string& name) {
    assert(name.size() < kSiteNameSize);
    std::memcpy(at, name.data(), name.size());
}

// Returns the text before the first zero byte; empty if none, or if other bytes than zeros follow.
std::string get_name(const std::byte* at) {
    const std::string_view field(reinterpret_cast<const char*>(at), kSiteNameSize);
    const std::size_t end = field.find('\0');
    if (end == field.npos || field.find_first_not_of('\0', end) != field.npos) return {};
    return std::string(field.substr(0, end));
}

}  // namespace

HelloBytes encode_hello(const Hello& hello) {
    HelloBytes bytes{};
    wire::put(bytes.data(), kHelloMagic);
    wire::put(bytes.data() + kVersion, kHelloVersion);
    wire::put(bytes.data() + kSession, hello.session);
    wire::put(bytes.data() + kPeerSession, hello.peer_session);
    wire::put(bytes.data() + kStream, hello.stream);
    wire::put(bytes.data() + kStreams, hello.streams);
    wire::put(bytes.data() + kWindow, hello.window);
    put_name(bytes.data() + kFrom, hello.from);
    put_name(bytes.data() + kTo, hello.to);
    return bytes;
}

std::optional<Hello> decode_hello(Bytes bytes) {
    if (bytes.size() < kHelloSize || wire::get<std::uint32_t>(bytes.data()) != kHelloMagic ||
        version_of_hello(bytes) != kHelloVersion || wire::get<std::uint16_t>(bytes.data() + kZero) != 0 ||
        wire::get<std::uint32_t>(bytes.data() + kMoreZero) != 0)
        return std::nullopt;
    Hello hello;
    hello.session = wire::get<std::uint64_t>(bytes.data() + kSession);
    hello.peer_session = wire::get<std::uint64_t>(bytes.data() + kPeerSession);
    hello.stream = wire::get<std::uint32_t>(bytes.data() + kStream);
    hello.streams = wire::get<std::uint32_t>(bytes.data() + kStreams);
    hello.window = wire::get<std::uint32_t>(bytes.data() + kWindow);
    hello.from = get_name(bytes.data() + kFrom);
    hello.to = get_name(bytes.data() + kTo);
    if (hello.session == 0 || hello.from.empty() || hello.to.empty()) return std::nullopt;
    return hello;
}

std::uint16_t version_of_hello(Bytes bytes) {
    return wire::get<std::uint16_t>(bytes.data() + kVersion);
}

std::array<std::byte, kWelcomeSize> encode_welcome(const Welcome& welcome) {
    std::array<std::byte, kWelcomeSize> bytes{};
    wire::put(bytes.data(), welcome.session);
    wire::put(bytes.data() + 8, welcome.peer_session);
    wire::put(bytes.data() + 16, welcome.window);
    return bytes;
}

Welcome decode_welcome(Bytes bytes) {
    assert(bytes.size() == kWelcomeSize);
    return {wire::get<std::uint64_t>(bytes.data()), wire::get<std::uint64_t>(bytes.data() + 8),
            wire::get<std::uint32_t>(bytes.data() + 16)};
}

Binding bind(std::uint64_t own, std::uint64_t bound_to, const Hello& hello) {
    const bool same = bound_to == hello.session;
    if (hello.peer_session == 0) return same || bound_to == 0 ? Binding::good : Binding::renewed;
    return same && hello.peer_session == own ? Binding::good : Binding::refused;
}

}  // namespace mcastcoll::gateway::session
