#include "split_net.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "split/call.h"

namespace mcastcoll::fabtest {
namespace {

using split::write_address;

const sockaddr* generic(const sockaddr_storage& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

void end_for(const char* what, const char* file, int line, int error) {
    std::fprintf(stderr, "%s:%d: not so: %s%s%s\n", file, line, what, error != 0 ? ": " : "",
                 error != 0 ? std::strerror(error) : "");
    std::_Exit(1);
}

sites::Endpoint endpoint(const std::string& host, std::uint16_t port) {
    auto parsed = sites::Endpoint::parse(host);
    MUST(parsed.ok());
    parsed.value().port = port;
    return parsed.value();
}

sites::Endpoint own(int fd) {
    sockaddr_storage address;
    socklen_t length = sizeof address;
    MUST(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return sites::Endpoint::of(generic(address), length);
}

sites::Endpoint peer(int fd) {
    sockaddr_storage address;
    socklen_t length = sizeof address;
    MUST(getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return sites::Endpoint::of(generic(address), length);
}

int bound_socket(const std::string& host, int domain, int flags) {
    const int fd = socket(domain, SOCK_STREAM | flags, 0);
    MUST(fd >= 0);
    sockaddr_storage address;
    const socklen_t length = write_address(endpoint(host, 0), domain, address);
    MUST(bind(fd, generic(address), length) == 0);
    return fd;
}

int listening(const std::string& host, int domain, int backlog) {
    const int fd = bound_socket(host, domain);
    MUST(listen(fd, backlog) == 0);
    return fd;
}

int connect_to(int fd, const sites::Endpoint& to, int domain) {
    sockaddr_storage address;
    const socklen_t length = write_address(to, domain, address);
    return connect(fd, generic(address), length);
}

int accept_from(int listener, sites::Endpoint& from, int flags) {
    sockaddr_storage address;
    socklen_t length = sizeof address;
    const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&address), &length, flags);
    if (fd >= 0) from = sites::Endpoint::of(generic(address), length);
    return fd;
}

void send_all(int fd, const void* from, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
        const ssize_t n = send(fd, static_cast<const std::byte*>(from) + done, size - done, MSG_NOSIGNAL);
        const bool later = n < 0 && errno == EAGAIN;
        MUST(later ? comes(fd, POLLOUT) : n > 0);
        if (!later) done += static_cast<std::size_t>(n);
    }
}

std::size_t receive_all(int fd, void* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t n = recv(fd, static_cast<std::byte*>(to) + done, size - done, 0);
        if (n == 0) break;
        const bool later = n < 0 && errno == EAGAIN;
        MUST(later ? comes(fd, POLLIN) : n > 0);
        if (!later) done += static_cast<std::size_t>(n);
    }
    return done;
}

bool comes(int fd, short events, int milliseconds) {
    pollfd one{fd, events, 0};
    return poll(&one, 1, milliseconds) == 1;
}

}  // namespace mcastcoll::fabtest
