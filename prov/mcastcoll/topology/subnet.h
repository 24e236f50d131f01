// A range of IP addresses, "10.77.0.0/24" or "fd00::/64". Subnets assign addresses to sites, and the subnet
// of a process is its default site. Makes no system calls.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::topology {

class Subnet {
  public:
    // A text without "/BITS" is a single address. Bits beyond the prefix must be 0.
    static Result<Subnet> parse(std::string_view text);
    // The subnet of an address of 4 or 16 bytes; an IPv4-mapped IPv6 address counts as IPv4. Any other size
    // gives an empty subnet.
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

// Returns the IPv4 address in an IPv4-mapped IPv6 address (::ffff:10.0.0.1), any other address unchanged.
Bytes unwrap(Bytes address);

}  // namespace mcastcoll::topology
