#include "transport/socket_address.h"

#include <arpa/inet.h>
#include <errno.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/system.h"
#include "wire/bytes.h"

namespace mcastcoll::transport {

SocketAddress::SocketAddress(Bytes address, std::uint16_t port, std::uint32_t scope) : SocketAddress() {
    if (address.size() == sizeof(in_addr)) {
        storage_.v4.sin_family = AF_INET;
        storage_.v4.sin_port = htons(port);
        std::memcpy(&storage_.v4.sin_addr, address.data(), sizeof(in_addr));
    } else if (address.size() == sizeof(in6_addr)) {
        storage_.v6.sin6_family = AF_INET6;
        storage_.v6.sin6_port = htons(port);
        storage_.v6.sin6_scope_id = scope;
        std::memcpy(&storage_.v6.sin6_addr, address.data(), sizeof(in6_addr));
    }
}

Result<SocketAddress> SocketAddress::from_bytes(Bytes bytes) {
    SocketAddress result;
    sa_family_t& family = result.storage_.any.sa_family;
    if (bytes.size() >= sizeof family) std::memcpy(&family, bytes.data(), sizeof family);
    if (!result.valid() || bytes.size() < result.size())
        return Error{EINVAL, fmt::format("{} bytes of family {} are not an IPv4 or IPv6 socket address",
                                         bytes.size(), family)};
    std::memcpy(&result.storage_, bytes.data(), result.size());
    return result;
}

Result<SocketAddress> SocketAddress::from(const sockaddr* address, socklen_t size) {
    if (address == nullptr) return Error{EINVAL, "no socket address"};
    return from_bytes(std::as_bytes(std::span(reinterpret_cast<const char*>(address), size)));
}

Result<SocketAddress> SocketAddress::parse(std::string_view text) {
    std::string_view host = text;
    std::string_view port_text;
    const std::size_t colons = static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos)
            return Error{EINVAL, fmt::format("\"{}\" lacks the closing bracket", text)};
        host = text.substr(1, close - 1);
        port_text = text.substr(close + 1);
        if (!port_text.empty() && !port_text.starts_with(':'))
            return Error{EINVAL,
                         fmt::format("\"{}\" has something other than :PORT after the bracket", text)};
        if (!port_text.empty()) port_text.remove_prefix(1);
    } else if (colons == 1) {
        host = text.substr(0, text.find(':'));
        port_text = text.substr(text.find(':') + 1);
    }
    std::uint16_t port = 0;
    const auto [end, status] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    if (!port_text.empty() && (status != std::errc() || end != port_text.data() + port_text.size()))
        return Error{EINVAL, fmt::format("\"{}\" is not a port number (0 to 65535)", port_text)};
    const std::string host_text(host);
    in_addr v4{};
    if (::inet_pton(AF_INET, host_text.c_str(), &v4) == 1) return SocketAddress(v4, port);
    in6_addr v6{};
    if (::inet_pton(AF_INET6, host_text.c_str(), &v6) == 1) return SocketAddress(v6, port);
    return Error{EINVAL, fmt::format("\"{}\" is not an IPv4 or IPv6 address", text)};
}

Result<SocketAddress> SocketAddress::of_socket(int descriptor) {
    SocketAddress result;
    socklen_t size = capacity();
    if (::getsockname(descriptor, result.data(), &size) != 0) return system_error(errno, "getsockname");
    if (!result.valid()) return Error{EAFNOSUPPORT, "the socket is neither IPv4 nor IPv6"};
    return result;
}

Bytes SocketAddress::address_bytes() const {
    if (family() == AF_INET) return std::as_bytes(std::span(&storage_.v4.sin_addr, 1));
    if (family() == AF_INET6) return std::as_bytes(std::span(&storage_.v6.sin6_addr, 1));
    return {};
}

bool SocketAddress::is_wildcard() const {
    return std::ranges::all_of(address_bytes(), [](std::byte byte) { return byte == std::byte{0}; });
}

bool SocketAddress::is_multicast() const {
    const Bytes bytes = address_bytes();
    if (family() == AF_INET) return (bytes[0] & std::byte{0xf0}) == std::byte{0xe0};
    return family() == AF_INET6 && bytes[0] == std::byte{0xff};
}

bool SocketAddress::is_link_local() const {
    const Bytes bytes = address_bytes();
    if (family() == AF_INET) return bytes[0] == std::byte{169} && bytes[1] == std::byte{254};
    return family() == AF_INET6 && bytes[0] == std::byte{0xfe} &&
           (bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
    SocketAddress result = *this;
    if (valid()) result.storage_.v4.sin_port = htons(port);
    return result;
}

SocketAddress SocketAddress::with_scope(std::uint32_t scope) const {
    SocketAddress result = *this;
    if (family() == AF_INET6) result.storage_.v6.sin6_scope_id = scope;
    return result;
}

SocketAddress SocketAddress::seen_from(std::uint32_t scope) const {
    return with_scope(is_link_local() ? scope : 0);
}

socklen_t SocketAddress::size() const {
    if (family() == AF_INET) return sizeof(sockaddr_in);
    if (family() == AF_INET6) return sizeof(sockaddr_in6);
    return 0;
}

std::string SocketAddress::to_string() const {
    char text[INET6_ADDRSTRLEN] = "";
    if (::inet_ntop(family(), address_bytes().data(), text, sizeof text) == nullptr) return "(no address)";
    return family() == AF_INET ? fmt::format("{}:{}", text, port()) : fmt::format("[{}]:{}", text, port());
}

std::size_t SocketAddress::hash() const {
    return stable_hash(address_bytes(), port());
}

SocketAddress random_group_address(int family, std::span<const std::byte, kGroupRandomBytes> random) {
    const std::uint16_t port =
        static_cast<std::uint16_t>(20000 + wire::get<std::uint16_t>(random.data()) % 12768);
    if (family == 6) {
        std::array<std::byte, sizeof(in6_addr)> address{std::byte{0xff}, std::byte{0x15}};
        std::copy_n(random.begin() + 2, 14, address.begin() + 2);
        return SocketAddress(address, port);
    }
    std::uint32_t low = wire::get<std::uint32_t>(random.data() + 2) & 0x00ffffffu;
    // Two kinds of addresses are avoided by changing the middle bits: the upper /24 of the local scope, which
    // is assigned, and x.0.0/24 and x.128.0/24, which map to the Ethernet addresses of 224.0.0/24 and get
    // other random bits.
    if ((low & 0x00ffff00u) == 0x00ffff00u) low &= 0x00ff7fffu;
    if ((low & 0x007fff00u) == 0) low |= (1 + wire::get<std::uint32_t>(random.data() + 6) % 0x7ffeu) << 8;
    in_addr address{};
    address.s_addr = htonl(0xef000000u | low);
    return SocketAddress(address, port);
}

SocketAddress range_group_address(int family, GroupKey parent, std::uint32_t level, std::uint32_t index,
                                  std::uint16_t port) {
    std::array<std::byte, sizeof parent + sizeof level + sizeof index> name;
    wire::put(name.data(), static_cast<std::uint64_t>(parent));
    wire::put(name.data() + sizeof parent, level);
    wire::put(name.data() + sizeof parent + sizeof level, index);
    std::array<std::byte, kGroupRandomBytes> drawn;
    wire::put(drawn.data(), stable_hash(name, 0));
    wire::put(drawn.data() + sizeof(std::uint64_t), stable_hash(name, 1));
    return random_group_address(family, drawn).with_port(port);
}

}  // namespace mcastcoll::transport
