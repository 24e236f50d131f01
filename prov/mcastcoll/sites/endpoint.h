// Endpoint: an IPv4 or IPv6 address with a port, as in prefaces and in the sites file. A value without
// sockets, shared by the library loaded into unmodified programs, the gateway and their tests.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

struct sockaddr;
struct sockaddr_storage;

namespace mcastcoll::sites {

enum class Family : std::uint16_t { none = 0, v4 = 4, v6 = 6 };

struct Endpoint {
    Family family = Family::none;
    std::uint16_t port = 0;
    // In network order. IPv4 uses the first four bytes, and the others are zero.
    std::array<std::byte, 16> address{};

    constexpr auto operator<=>(const Endpoint&) const = default;
    bool valid() const { return family == Family::v4 || family == Family::v6; }
    std::size_t address_size() const { return family == Family::v4 ? 4 : family == Family::v6 ? 16 : 0; }
    bool same_host(const Endpoint& other) const { return family == other.family && address == other.address; }

    // Accepts "10.1.0.1:7400", "[fd00::1]:7400", and addresses without a port, which is then 0.
    static Result<Endpoint> parse(std::string_view text);
    // Converts a sockaddr_in or sockaddr_in6. An IPv4-mapped IPv6 address (::ffff:10.1.0.1) becomes IPv4. An
    // address of any other family gives the invalid endpoint.
    static Endpoint of(const sockaddr* address, std::size_t size);
    // Fills in a sockaddr for connect() and bind() and returns its size; 0 for the invalid endpoint.
    std::size_t to(sockaddr_storage& address) const;
    std::string to_string() const;
};

}  // namespace mcastcoll::sites
