#include "split/socket_address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace mcastcoll::split {

int domain_of(int fd) noexcept {
    int domain = -1;
    socklen_t length = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 ? domain : -1;
}

socklen_t write_address(const relay::Endpoint& endpoint, int domain, sockaddr_storage& address) noexcept {
    if (domain == AF_INET6 && endpoint.family == relay::Family::v4) {
        sockaddr_in6 mapped{};
        mapped.sin6_family = AF_INET6;
        mapped.sin6_port = htons(endpoint.port);
        mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
        std::memcpy(&mapped.sin6_addr.s6_addr[12], endpoint.address.data(), 4);
        std::memset(&address, 0, sizeof address);
        std::memcpy(&address, &mapped, sizeof mapped);
        return sizeof mapped;
    }
    if (domain != (endpoint.family == relay::Family::v4 ? AF_INET : AF_INET6)) return 0;
    return static_cast<socklen_t>(endpoint.to(address));
}

void hand_out(const sockaddr_storage& address, socklen_t length, sockaddr* to, socklen_t* room) noexcept {
    if (to == nullptr || room == nullptr) return;
    std::memcpy(to, &address, std::min(length, *room));
    *room = length;
}

relay::Endpoint own_endpoint(int fd) noexcept {
    sockaddr_storage own;
    socklen_t length = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) return {};
    return relay::Endpoint::of(reinterpret_cast<const sockaddr*>(&own), length);
}

}  // namespace mcastcoll::split
