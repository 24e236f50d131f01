#include "datagram/sockets.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/system.h"
#include "transport/udp_socket.h"

namespace mcastcoll::datagram {
namespace {

// Sets the socket to send multicasts on this interface, and to deliver them to other processes of this host
// too.
Result<void> aim(int descriptor, const transport::Interface& interface, int ttl,
                 const transport::SocketAddress& from) {
    if (from.family() == AF_INET6) {
        const int index = static_cast<int>(interface.index);
        return transport::set_options(descriptor,
                                      {{IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"},
                                       {IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL"},
                                       {IPPROTO_IPV6, IPV6_MULTICAST_IF, index, "IPV6_MULTICAST_IF"},
                                       {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, ttl, "IPV6_MULTICAST_HOPS"},
                                       {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1, "IPV6_MULTICAST_LOOP"}});
    }
    const transport::SocketAddress& source = from.is_wildcard() && interface.v4 ? *interface.v4 : from;
    if (auto set = transport::multicast_from(descriptor, interface, source); !set) return set;
    // IP_MULTICAST_ALL: with its default the socket would receive every group joined on the host.
    return transport::set_options(descriptor, {{IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL"},
                                               {IPPROTO_IP, IP_MULTICAST_TTL, ttl, "IP_MULTICAST_TTL"},
                                               {IPPROTO_IP, IP_MULTICAST_LOOP, 1, "IP_MULTICAST_LOOP"}});
}

Result<void> prepare(int descriptor, const provider::Settings& settings,
                     const transport::SocketAddress& address) {
    if (auto size = transport::size_buffer(descriptor, settings.rcvbuf, SO_RCVBUFFORCE, SO_RCVBUF); !size)
        return size.error();
    if (auto size = transport::size_buffer(descriptor, settings.sndbuf, SO_SNDBUFFORCE, SO_SNDBUF); !size)
        return size.error();
    if (::bind(descriptor, address.data(), address.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to {}", address));
    return {};
}

// Returns 0 or an errno value.
int send_message(int socket, msghdr& message, const transport::SocketAddress& to) {
    message.msg_name = const_cast<sockaddr*>(to.data());
    message.msg_namelen = to.size();
    ssize_t sent;
    do {
        sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

}  // namespace

Result<std::unique_ptr<transport::VerbsTransport>> open_queue_pair(const transport::Interface& interface,
                                                                   const provider::Settings& settings,
                                                                   int family) {
    transport::VerbsOptions options;
    options.interface = interface;
    options.family = family == AF_INET ? 4 : 6;
    options.ttl = settings.ttl;
    options.receives = settings.receives;
    options.max_memberships = settings.memberships;
    return transport::open_verbs(options);
}

Result<FileDescriptor> open_own_socket(const transport::Interface& interface,
                                       const provider::Settings& settings,
                                       const transport::SocketAddress& address) {
    auto socket = transport::open_datagram_socket(address.family());
    if (!socket) return socket;
    const int descriptor = socket.value().get();
    auto done = aim(descriptor, interface, settings.ttl, address);
    if (done) done = prepare(descriptor, settings, address);
    // Set only after bind(): no other socket can bind the same address, but groups with the same port can be
    // joined.
    if (done) done = transport::set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    if (!done) return done.error();
    return socket;
}

Result<FileDescriptor> open_group_socket(const transport::Interface& interface,
                                         const provider::Settings& settings,
                                         const transport::SocketAddress& group) {
    auto socket = transport::open_datagram_socket(group.family());
    if (!socket) return socket;
    const int descriptor = socket.value().get();
    auto done = transport::set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    if (done) done = transport::receive_own_groups(descriptor, group.family());
    if (done) done = prepare(descriptor, settings, group);
    if (!done) return done.error();
    if (const int error = transport::change_membership(descriptor, MCAST_JOIN_GROUP, group, interface.index))
        return system_error(error, fmt::format("cannot join {} on {}", group, interface.name));
    return socket;
}

int transmit(int socket, std::span<const iovec> pieces, const transport::SocketAddress& to) {
    msghdr out{};
    out.msg_iov = const_cast<iovec*>(pieces.data());
    out.msg_iovlen = pieces.size();
    return send_message(socket, out, to);
}

int transmit(int socket, Bytes packets, std::size_t unit, const transport::SocketAddress& to) {
    iovec piece{const_cast<std::byte*>(packets.data()), packets.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr out{};
    out.msg_iov = &piece;
    out.msg_iovlen = 1;
    if (packets.size() > unit) {
        out.msg_control = control.data();
        out.msg_controllen = control.size();
        cmsghdr* note = CMSG_FIRSTHDR(&out);
        note->cmsg_level = IPPROTO_UDP;
        note->cmsg_type = UDP_SEGMENT;
        note->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
        const auto size = static_cast<std::uint16_t>(unit);
        std::memcpy(CMSG_DATA(note), &size, sizeof size);
    }
    return send_message(socket, out, to);
}

}  // namespace mcastcoll::datagram
