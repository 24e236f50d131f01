#include "datagram/sockets.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "base/system.h"
#include "datagram/reliable.h"
#include "transport/udp_socket.h"

namespace mcastcoll::ofi::datagram {
namespace {

// Multicasts leave by this interface, and reach other processes of this host, too.
Result<void> aim(int descriptor, const Interface& interface, int ttl, const SocketAddress& from) {
    if (from.family() == AF_INET6) {
        const int index = static_cast<int>(interface.index);
        return set_options(descriptor, {{IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"},
                                        {IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL"},
                                        {IPPROTO_IPV6, IPV6_MULTICAST_IF, index, "IPV6_MULTICAST_IF"},
                                        {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, ttl, "IPV6_MULTICAST_HOPS"},
                                        {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1, "IPV6_MULTICAST_LOOP"}});
    }
    const SocketAddress& source = from.is_wildcard() && interface.v4 ? *interface.v4 : from;
    if (auto set = multicast_from(descriptor, interface, source); !set) return set;
    // IP_MULTICAST_ALL: without it the socket would hear all groups that anybody on the host has joined.
    return set_options(descriptor, {{IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL"},
                                    {IPPROTO_IP, IP_MULTICAST_TTL, ttl, "IP_MULTICAST_TTL"},
                                    {IPPROTO_IP, IP_MULTICAST_LOOP, 1, "IP_MULTICAST_LOOP"}});
}

Result<void> size_buffers(int descriptor, const Settings& settings) {
    if (auto size = size_buffer(descriptor, settings.rcvbuf, SO_RCVBUFFORCE, SO_RCVBUF); !size)
        return size.error();
    if (auto size = size_buffer(descriptor, settings.sndbuf, SO_SNDBUFFORCE, SO_SNDBUF); !size)
        return size.error();
    return {};
}

}  // namespace

std::size_t largest_message(const Interface& interface, int family, fi_ep_type type) {
    const std::size_t datagram = payload_for({.interface = interface, .family = family == AF_INET ? 4 : 6});
    return type == FI_EP_RDM ? reliable_message(datagram) : datagram;
}

Result<FileDescriptor> open_own_socket(const Interface& interface, const Settings& settings,
                                       const SocketAddress& address) {
    auto socket = open_datagram_socket(address.family());
    if (!socket) return socket.error();
    const int descriptor = socket.value().get();
    if (auto set = aim(descriptor, interface, settings.ttl, address); !set) return set.error();
    if (auto set = size_buffers(descriptor, settings); !set) return set.error();
    if (::bind(descriptor, address.data(), address.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to {}", address));
    // Only now: nobody else gets this address, but groups with the same port can be joined.
    if (auto set = set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !set)
        return set.error();
    return socket;
}

Result<FileDescriptor> open_group_socket(const Interface& interface, const Settings& settings,
                                         const SocketAddress& group) {
    const bool v4 = group.family() == AF_INET;
    auto socket = open_datagram_socket(group.family());
    if (!socket) return socket.error();
    const int descriptor = socket.value().get();
    if (auto set = set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !set)
        return set.error();
    if (auto set = hear_own_groups(descriptor, group.family()); !set) return set.error();
    if (auto set = size_buffers(descriptor, settings); !set) return set.error();
    if (::bind(descriptor, group.data(), group.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to {}", group));
    group_req request{};
    request.gr_interface = interface.index;
    std::memcpy(&request.gr_group, group.data(), group.size());
    if (::setsockopt(descriptor, v4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &request,
                     sizeof request) != 0)
        return system_error(errno, fmt::format("cannot join {} on {}", group, interface.name));
    return socket;
}

}  // namespace mcastcoll::ofi::datagram
