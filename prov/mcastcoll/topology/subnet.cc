#include "topology/subnet.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace mcastcoll::topology {
namespace {

constexpr unsigned kMappedAt = 12;

std::byte mask_of(unsigned byte, unsigned prefix_bits) {
    if (prefix_bits >= 8 * (byte + 1)) return std::byte{0xff};
    if (prefix_bits <= 8 * byte) return std::byte{0};
    return static_cast<std::byte>(0xff00U >> (prefix_bits - 8 * byte) & 0xffU);
}

}  // namespace

Bytes unwrap(Bytes address) {
    if (address.size() != 16) return address;
    const auto zeros = address.first(kMappedAt - 2);
    const bool mapped =
        std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{0}; }) &&
        address[10] == std::byte{0xff} && address[11] == std::byte{0xff};
    return mapped ? address.subspan(kMappedAt) : address;
}

Subnet Subnet::around(Bytes address, unsigned prefix_bits) {
    Subnet subnet;
    const Bytes bare = unwrap(address);
    if (bare.size() != 4 && bare.size() != 16) return subnet;
    if (bare.size() != address.size())
        prefix_bits = prefix_bits > 8 * kMappedAt ? prefix_bits - 8 * kMappedAt : 0;
    subnet.address_bytes_ = static_cast<std::uint8_t>(bare.size());
    subnet.prefix_bits_ = static_cast<std::uint8_t>(std::min<std::size_t>(prefix_bits, 8 * bare.size()));
    for (unsigned i = 0; i < bare.size(); ++i) subnet.address_[i] = bare[i] & mask_of(i, subnet.prefix_bits_);
    return subnet;
}

Result<Subnet> Subnet::parse(std::string_view text) {
    const auto wrong = [text](const std::string& why) {
        return Error{EINVAL, '"' + std::string(text) + "\" " + why};
    };
    const std::size_t slash = text.find('/');
    const std::string address(text.substr(0, slash));
    std::array<std::byte, 16> bytes{};
    std::size_t size = 4;
    if (::inet_pton(AF_INET, address.c_str(), bytes.data()) != 1) {
        size = 16;
        if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1)
            return wrong("is not a subnet: write ADDRESS or ADDRESS/BITS, like 10.77.0.0/24 or fd00::/64");
    }
    unsigned bits = static_cast<unsigned>(8 * size);
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
        if (error != std::errc() || end != digits.data() + digits.size() || bits > 8 * size)
            return wrong("needs a number of bits from 0 to " + std::to_string(8 * size) + " after the slash");
    }
    const Subnet subnet = around(Bytes(bytes).first(size), bits);
    if (subnet.address_bytes_ == size && !std::equal(bytes.begin(), bytes.end(), subnet.address_.begin()))
        return wrong("has bits beyond its prefix: " + subnet.to_string() + " is meant?");
    return subnet;
}

bool Subnet::contains(Bytes address) const {
    const Bytes bare = unwrap(address);
    if (address_bytes_ == 0 || bare.size() != address_bytes_) return false;
    for (unsigned i = 0; i < bare.size(); ++i)
        if ((bare[i] & mask_of(i, prefix_bits_)) != address_[i]) return false;
    return true;
}

std::string Subnet::to_string() const {
    char text[INET6_ADDRSTRLEN] = "";
    if (address_bytes_ == 0) return "no subnet";
    ::inet_ntop(address_bytes_ == 4 ? AF_INET : AF_INET6, address_.data(), text, sizeof text);
    return std::string(text) + '/' + std::to_string(prefix_bits_);
}

}  // namespace mcastcoll::topology
