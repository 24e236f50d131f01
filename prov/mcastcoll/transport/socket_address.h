// SocketAddress: an IPv4 or IPv6 address with its port, as a value. Receivers distinguish senders by their
// SocketAddress, so equality and hash consider only family, address and port, not the scope, flow or padding,
// which kernels fill in differently. This header also derives the addresses to which groups multicast.
#pragma once

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::transport {

class SocketAddress {
  public:
    // No address: family AF_UNSPEC.
    SocketAddress() : storage_{} {}
    SocketAddress(const in_addr& address, std::uint16_t port)
        : SocketAddress(std::as_bytes(std::span(&address, 1)), port) {}
    SocketAddress(const in6_addr& address, std::uint16_t port, std::uint32_t scope = 0)
        : SocketAddress(std::as_bytes(std::span(&address, 1)), port, scope) {}
    // From the 4 or 16 bytes of address_bytes(); any other number of bytes gives no address.
    SocketAddress(Bytes address, std::uint16_t port, std::uint32_t scope = 0);

    // From a sockaddr_in or sockaddr_in6 in memory that need not be aligned. Shorter input is an error. Of
    // longer input only the family's bytes are read, so the last element of an array may be passed with
    // capacity() bytes.
    static Result<SocketAddress> from_bytes(Bytes bytes);
    static Result<SocketAddress> from(const sockaddr* address, socklen_t size);
    // "10.0.0.1", "10.0.0.1:80", "fd00::1", "[fd00::1]:80".
    static Result<SocketAddress> parse(std::string_view text);
    // The local address of a socket (getsockname).
    static Result<SocketAddress> of_socket(int descriptor);

    int family() const { return storage_.any.sa_family; }
    bool valid() const { return family() == AF_INET || family() == AF_INET6; }
    std::uint16_t port() const { return valid() ? ntohs(storage_.v4.sin_port) : std::uint16_t{0}; }
    // The 4 or 16 address bytes in network order; empty without an address.
    Bytes address_bytes() const;
    std::uint32_t scope() const { return family() == AF_INET6 ? storage_.v6.sin6_scope_id : 0; }
    bool is_wildcard() const;
    bool is_multicast() const;
    // True for fe80::/10 and 169.254/16: such addresses are valid on one link only.
    bool is_link_local() const;
    bool same_host(const SocketAddress& other) const {
        if (family() != other.family()) return false;
        if (family() == AF_INET) return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
        return family() != AF_INET6 ||
               std::memcmp(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, sizeof(in6_addr)) == 0;
    }

    SocketAddress with_port(std::uint16_t port) const;
    SocketAddress with_scope(std::uint32_t scope) const;
    // Returns a peer's address for use on this host. A link-local address gets `scope`, the number of this
    // host's interface on the same link: the scope in the peer's address is the number of the peer's own
    // interface and has no meaning here. Any other address gets scope 0.
    SocketAddress seen_from(std::uint32_t scope) const;

    const sockaddr* data() const { return &storage_.any; }
    Bytes bytes() const { return std::as_bytes(std::span(reinterpret_cast<const char*>(data()), size())); }
    // The memory into which the kernel writes an address, at most capacity() bytes.
    sockaddr* data() { return &storage_.any; }
    socklen_t size() const;
    static constexpr socklen_t capacity() { return sizeof(sockaddr_in6); }

    std::string to_string() const;
    std::size_t hash() const;
    friend bool operator==(const SocketAddress& left, const SocketAddress& right) {
        return left.port() == right.port() && left.same_host(right);
    }

  private:
    union Storage {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    };
    Storage storage_;
};

// Number of random bytes for random_group_address().
inline constexpr std::size_t kGroupRandomBytes = 16;

// A group address and port from `random`. IPv4: from the administratively scoped 239/8 with 24 random bits,
// except for assigned blocks and blocks with the Ethernet addresses of the never-filtered 224.0.0/24. IPv6:
// from ff15::/16 (transient, site scope) with 112 random bits. The port, 20000 to 32767, is below the
// ephemeral range.
SocketAddress random_group_address(int family, std::span<const std::byte, kGroupRandomBytes> random);

// Returns the multicast address of an aligned range of a group's ranks. Every process with the group's key
// can compute the address. The key seeds a pseudo-random derivation, so the address is as random as the key.
SocketAddress range_group_address(int family, GroupKey parent, std::uint32_t level, std::uint32_t index,
                                  std::uint16_t port);

}  // namespace mcastcoll::transport

template <>
struct std::hash<mcastcoll::transport::SocketAddress> {
    std::size_t operator()(const mcastcoll::transport::SocketAddress& address) const {
        return address.hash();
    }
};

template <>
struct fmt::formatter<mcastcoll::transport::SocketAddress> : fmt::formatter<std::string> {
    template <typename Context>
    auto format(const mcastcoll::transport::SocketAddress& address, Context& context) const {
        return fmt::formatter<std::string>::format(address.to_string(), context);
    }
};
