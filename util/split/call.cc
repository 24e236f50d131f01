#include "split/call.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"

namespace mcastcoll::split {

constinit Real<int(int, const sockaddr*, socklen_t)> real_connect{"connect"};
constinit Real<ssize_t(int, const void*, size_t, int)> real_send{"send"};
constinit Real<ssize_t(int, void*, size_t, int)> real_recv{"recv"};

bool wait_for(int fd, short events, int milliseconds) noexcept {
    const Nanoseconds end = monotonic_now() + Nanoseconds::from_ms(milliseconds);
    for (int left = milliseconds;;) {
        pollfd one{fd, events, 0};
        const int ready = poll(&one, 1, left);
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
        if (left > 0)
            left = static_cast<int>(std::max(end - monotonic_now(), Nanoseconds{0}).value / 1'000'000);
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

socklen_t write_address(const sites::Endpoint& endpoint, int domain, sockaddr_storage& address) noexcept {
    sites::Endpoint shown = endpoint;
    if (domain == AF_INET6 && endpoint.family == sites::Family::v4) {
        shown = {sites::Family::v6, endpoint.port, {}};
        shown.address[10] = shown.address[11] = std::byte{0xff};
        std::copy_n(endpoint.address.begin(), 4, shown.address.begin() + 12);
    }
    if (domain != (shown.family == sites::Family::v4 ? AF_INET : AF_INET6)) return 0;
    return static_cast<socklen_t>(shown.to(address));
}

}  // namespace mcastcoll::split
