// A range of IP addresses, "10.77.0.0/24" or "fd00::/64": how users say which addresses are one site, and
// what a process takes for its site when nobody says. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::topology {

class Subnet {
  public:
    // Without "/BITS" a single address. Bits beyond the prefix have to be 0.
    static Result<Subnet> parse(std::string_view text);
    // The subnet of an address of 4 or 16 bytes; an IPv4 address within IPv6 counts as IPv4. Any other number
    // of bytes makes one that contains nothing.
    static Subnet around(Bytes address, unsigned prefix_bits);

    bool contains(Bytes address) const;
    unsigned prefix_bits() const { return prefix_bits_; }
    std::string to_string() const;
    bool operator==(const Subnet&) const = default;

  private:
    std::array<std::byte, 16> address_{};
    std::uint8_t address_bytes_ = 0;
    std::uint8_t prefix_bits_ = 0;
};

// The IPv4 address in an IPv6 one that only wraps it (::ffff:10.0.0.1); any other as it is.
Bytes unwrap(Bytes address);

}  // namespace mcastcoll::topology
