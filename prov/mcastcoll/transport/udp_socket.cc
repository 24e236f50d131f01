#include "transport/udp_socket.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/system.h"

namespace mcastcoll::transport {
namespace {

constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kIpv4Header = 20;
constexpr std::size_t kIpv6Header = 40;
// The length field of a packet has 16 bits. In IPv4 the length includes the IP header, in IPv6 it does not.
constexpr std::size_t kMaxLength = 65535;

}  // namespace

Result<void> set_option(int descriptor, int level, int name, int value, const char* what) {
    if (::setsockopt(descriptor, level, name, &value, sizeof value) != 0)
        return system_error(errno, fmt::format("cannot set {} to {}", what, value));
    return {};
}

Result<void> set_options(int descriptor, std::initializer_list<SocketOption> options) {
    for (const SocketOption& option : options)
        if (auto set = set_option(descriptor, option.level, option.name, option.value, option.what); !set)
            return set;
    return {};
}

Result<void> multicast_from(int descriptor, const Interface& interface, const SocketAddress& source) {
    ip_mreqn request{};
    request.imr_ifindex = static_cast<int>(interface.index);
    std::memcpy(&request.imr_address, source.address_bytes().data(), sizeof request.imr_address);
    if (::setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request) != 0)
        return system_error(errno, fmt::format("cannot multicast on {}", interface.name));
    return {};
}

Result<void> receive_own_groups(int descriptor, int family) {
    return family == AF_INET
               ? set_option(descriptor, IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL")
               : set_option(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL");
}

int change_membership(int descriptor, int how, const SocketAddress& group, unsigned interface_index) {
    group_req request{};
    request.gr_interface = interface_index;
    std::memcpy(&request.gr_group, group.data(), group.size());
    const int level = group.family() == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    return ::setsockopt(descriptor, level, how, &request, sizeof request) == 0 ? 0 : errno;
}

bool is_full(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

std::size_t run_unit(msghdr& message, std::size_t otherwise) {
    for (cmsghdr* note = CMSG_FIRSTHDR(&message); note != nullptr; note = CMSG_NXTHDR(&message, note)) {
        if (note->cmsg_level != IPPROTO_UDP || note->cmsg_type != UDP_GRO) continue;
        int unit = 0;
        std::memcpy(&unit, CMSG_DATA(note), sizeof unit);
        return unit > 0 ? static_cast<std::size_t>(unit) : otherwise;
    }
    return otherwise;
}

Result<FileDescriptor> open_datagram_socket(int family) {
    FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return system_error(errno, "cannot open a UDP socket");
    return socket;
}

Result<std::size_t> size_buffer(int descriptor, std::size_t bytes, int forced, int limited) {
    const int wanted = static_cast<int>(std::min<std::size_t>(bytes, INT32_MAX / 2));
    if (bytes > 0 && ::setsockopt(descriptor, SOL_SOCKET, forced, &wanted, sizeof wanted) != 0) {
        if (::setsockopt(descriptor, SOL_SOCKET, limited, &wanted, sizeof wanted) != 0)
            return system_error(errno, fmt::format("cannot set a socket buffer to {} bytes", bytes));
    }
    int granted = 0;
    socklen_t size = sizeof granted;
    if (::getsockopt(descriptor, SOL_SOCKET, limited, &granted, &size) != 0)
        return system_error(errno, "cannot read the size of a socket buffer");
    return static_cast<std::size_t>(granted);
}

Result<void> check(const MulticastOptions& options) {
    const Interface& interface = options.interface;
    if (options.family != 4 && options.family != 6)
        return Error{EINVAL, fmt::format("multicast needs IP version 4 or 6, not {}", options.family)};
    if (options.ttl < 0 || options.ttl > 255)
        return Error{EINVAL, fmt::format("the multicast TTL is 0 to 255, not {}", options.ttl)};
    if (interface.index == 0) return Error{EINVAL, "no interface was given to multicast on"};
    if (!interface.up) return Error{ENETDOWN, fmt::format("interface {} is down", interface.name)};
    // On Linux the loopback interface delivers multicasts within the host, but does not have the multicast
    // flag.
    if (!interface.multicast && !interface.loopback)
        return Error{EOPNOTSUPP, fmt::format("interface {} does not support multicast", interface.name)};
    if (!options.address())
        return Error{EADDRNOTAVAIL, fmt::format("interface {} has no IPv{} address to send from",
                                                interface.name, options.family)};
    return {};
}

std::size_t payload_for(const MulticastOptions& options) {
    const std::size_t mtu = options.interface.mtu;
    const std::size_t headers = (options.family == 4 ? kIpv4Header : kIpv6Header) + kUdpHeader;
    const std::size_t largest = kMaxLength - (options.family == 4 ? headers : kUdpHeader);
    std::size_t payload = mtu > headers ? std::min(mtu - headers, largest) : 0;
    if (options.payload_limit > 0) payload = std::min(payload, options.payload_limit);
    return payload;
}

}  // namespace mcastcoll::transport
