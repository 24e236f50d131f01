#include "split/call.h"

#include <netinet/in.h>
#include <poll.h>

#include <cstring>

#include "base/clock.h"

namespace mcastcoll::split {
namespace {

long now_ms() noexcept {
    return monotonic_now().value / 1'000'000;
}

}  // namespace

constinit Real<int(int, const sockaddr*, socklen_t)> real_connect{"connect"};
constinit Real<ssize_t(int, const void*, size_t, int)> real_send{"send"};
constinit Real<ssize_t(int, void*, size_t, int)> real_recv{"recv"};

bool wait_for(int fd, short events, int milliseconds) noexcept {
    const long end = now_ms() + milliseconds;
    for (long left = milliseconds;; left = end - now_ms()) {
        if (milliseconds >= 0 && left < 0) left = 0;
        pollfd one{fd, events, 0};
        const int ready = poll(&one, 1, milliseconds < 0 ? -1 : static_cast<int>(left));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

void pause_a_little() noexcept {
    const timespec little{0, 500000};
    nanosleep(&little, nullptr);
}

int option_of(int fd, int option) noexcept {
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
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

}  // namespace mcastcoll::split
