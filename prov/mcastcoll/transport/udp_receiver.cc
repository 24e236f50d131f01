#include "transport/udp_receiver.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>

#include <utility>

#include "base/system.h"

namespace mcastcoll::transport {

Result<void> UdpReceiver::open(const UdpMulticastOptions& options, std::uint16_t at) {
    const bool v4 = options.family == 4;
    port = at;
    interface_index = options.interface.index;
    auto opened = open_datagram_socket(options.address_family());
    if (!opened) return opened.error();
    socket = std::move(opened).value();
    const int descriptor = socket.get();
    if (auto set = set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !set) return set;
    auto own = receive_own_groups(descriptor, options.address_family());
    if (own && !v4) own = set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
    if (!own) return own;
    auto granted = size_buffer(descriptor, options.receive_buffer_bytes, SO_RCVBUFFORCE, SO_RCVBUF);
    if (!granted) return granted.error();
    buffer_bytes = granted.value();
    // A kernel without UDP_GRO delivers single datagrams.
    takes_runs = options.offload && set_option(descriptor, IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO").ok();
    const SocketAddress any =
        v4 ? SocketAddress(in_addr{INADDR_ANY}, port) : SocketAddress(in6addr_any, port);
    if (::bind(descriptor, any.data(), any.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to port {}", port));
    return {};
}

Result<void> UdpReceiver::join(const SocketAddress& group) {
    if (const int error = change_membership(socket.get(), MCAST_JOIN_GROUP, group, interface_index))
        return system_error(error, fmt::format("cannot join {}", group));
    ++memberships;
    return {};
}

void UdpReceiver::leave(const SocketAddress& group) {
    (void)change_membership(socket.get(), MCAST_LEAVE_GROUP, group, interface_index);
    --memberships;
}

std::uint64_t UdpReceiver::drops() const {
    std::uint32_t info[SK_MEMINFO_VARS] = {};
    socklen_t size = sizeof info;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_MEMINFO, info, &size) == 0 ? info[SK_MEMINFO_DROPS] : 0;
}

}  // namespace mcastcoll::transport
