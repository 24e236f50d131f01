#include "gateway/sockets.h"

#include <errno.h>
#include <fmt/format.h>

#include <cstring>

#include "base/system.h"

namespace mcastcoll::gateway {
namespace {

Error failed(const char* what, const Endpoint& endpoint) {
    return system_error(errno, fmt::format("{} {}", what, endpoint.to_string()));
}

Result<FileDescriptor> make_socket(const Endpoint& endpoint) {
    FileDescriptor socket(::socket(endpoint.family == sites::Family::v6 ? AF_INET6 : AF_INET,
                                   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (!socket.valid()) return failed("a socket for", endpoint);
    return socket;
}

}  // namespace

Result<FileDescriptor> listen_at(const Endpoint& endpoint) {
    auto socket = make_socket(endpoint);
    if (!socket) return socket;
    const int descriptor = socket.value().get();
    set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    if (endpoint.family == sites::Family::v6) set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_storage address;
    const auto size = static_cast<socklen_t>(endpoint.to(address));
    if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) != 0)
        return failed("cannot listen at", endpoint);
    if (listen(descriptor, 4096) != 0) return failed("cannot listen at", endpoint);
    return socket;
}

Result<FileDescriptor> connect_to(const Endpoint& endpoint, const std::optional<Endpoint>& from) {
    auto socket = make_socket(endpoint);
    if (!socket) return socket;
    sockaddr_storage address;
    if (from) {
        // Chooses the port when connecting: the range of ports then applies per target, not in total.
        set_option(socket.value().get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        const auto own = static_cast<socklen_t>(from->to(address));
        if (bind(socket.value().get(), reinterpret_cast<const sockaddr*>(&address), own) != 0 &&
            errno != EADDRNOTAVAIL)
            return failed("cannot connect from", *from);
    }
    const auto size = static_cast<socklen_t>(endpoint.to(address));
    if (connect(socket.value().get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 &&
        errno != EINPROGRESS)
        return failed("cannot connect to", endpoint);
    return socket;
}

Endpoint name_of(int descriptor) {
    sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return Endpoint::of(reinterpret_cast<const sockaddr*>(&address), size);
}

bool send_what_fits(int descriptor, Bytes bytes, std::size_t& done) {
    while (done < bytes.size()) {
        const Bytes rest = bytes.subspan(done);
        const ssize_t size = send(descriptor, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size >= 0)
            done += static_cast<std::size_t>(size);
        else if (errno != EINTR)
            return errno == EAGAIN;
    }
    return true;
}

void close_with_reset(FileDescriptor& descriptor) {
    set_option(descriptor.get(), SOL_SOCKET, SO_LINGER, linger{1, 0});
    descriptor.reset();
}

Result<void> set_congestion(int descriptor, const std::string& name) {
    if (setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                   static_cast<socklen_t>(name.size())) != 0)
        return Error{errno,
                     fmt::format("congestion = {}: {}", name,
                                 errno == ENOENT ? "this system does not support it" : std::strerror(errno))};
    return {};
}

}  // namespace mcastcoll::gateway
