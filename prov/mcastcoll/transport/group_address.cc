#include "transport/group_address.h"

#include <array>
#include <cstring>

#include "base/system.h"
#include "wire/bytes.h"

namespace mcastcoll {

SocketAddress random_group_address(int family, std::span<const std::byte, kGroupRandomBytes> random) {
    const std::uint16_t port =
        static_cast<std::uint16_t>(20000 + wire::get<std::uint16_t>(random.data()) % 12768);
    if (family == 6) {
        in6_addr address{};
        address.s6_addr[0] = 0xff;
        address.s6_addr[1] = 0x15;
        std::memcpy(address.s6_addr + 2, random.data() + 2, 14);
        return SocketAddress(address, port);
    }
    std::uint32_t low = wire::get<std::uint32_t>(random.data() + 2) & 0x00ffffffu;
    // The upper /24 of the local scope is assigned; x.0.0/24 and x.128.0/24 map to the Ethernet addresses of
    // 224.0.0/24. Both are left by setting bits in the middle, the one out of what is random anyway.
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

}  // namespace mcastcoll
