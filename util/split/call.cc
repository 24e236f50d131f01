#include "split/call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/time.h>
#include <time.h>

namespace mcastcoll::split {
namespace {

long now_ms() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
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

bool is_nonblocking(int fd) noexcept {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

int timeout_of(int fd, int option) noexcept {
    timeval limit{};
    socklen_t length = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, option, &limit, &length) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0))
        return -1;
    return static_cast<int>(limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000);
}

}  // namespace mcastcoll::split
