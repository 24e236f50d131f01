#include "split/connecting.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "split/call.h"
#include "split/routes.h"
#include "split/socket_address.h"
#include "split/waiter.h"

namespace mcastcoll::split {
namespace {

int real_connect_to(int fd, const relay::Endpoint& to) noexcept {
    sockaddr_storage address;
    const socklen_t length = write_address(to, domain_of(fd), address);
    if (length != 0) return real_connect(fd, reinterpret_cast<const sockaddr*>(&address), length);
    errno = EAFNOSUPPORT;
    return -1;
}

std::array<std::byte, relay::kPrefaceSize> preface_of(int fd, const relay::Endpoint& target) noexcept {
    relay::Preface preface;
    preface.source = own_endpoint(fd);
    preface.target = target;
    // The host's number is the end of its address, which tells a site's hosts apart.
    const std::size_t size = preface.source.address_size();
    for (std::size_t i = size < 4 ? 0 : size - 4; i < size; i++)
        preface.node = preface.node << 8 | std::to_integer<std::uint32_t>(preface.source.address[i]);
    preface.process = static_cast<std::uint32_t>(getpid());
    return relay::encode_preface(preface);
}

// A connection that is being made: 0 once it is, EINPROGRESS while it is not, or why it failed.
int outcome_of(int fd, int patience_ms) noexcept {
    if (!wait_for(fd, POLLOUT, patience_ms)) return EINPROGRESS;
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

// The same socket asked again, as programs do to learn how a connection gets on.  False if this one is new.
bool ask_again(int fd, const relay::Endpoint& gateway, const relay::Endpoint& target, std::uint64_t cookie,
               int& result) noexcept {
    {
        const Locked locked;
        const Connection* known = find(cookie);
        if (known == nullptr) return false;
        if (known->accepted || known->peer != target) {
            remove(cookie);
            return false;
        }
    }
    result = real_connect_to(fd, gateway);
    const KeepErrno keep;
    const Locked locked;
    Connection* known = find(cookie);
    if (result == 0 && known != nullptr && known->stage == Stage::to_send) flush(fd, *known);
    return true;
}

}  // namespace

int flush(int fd, Connection& connection) noexcept {
    while (connection.sent < relay::kPrefaceSize) {
        const ssize_t n = real_send(fd, connection.preface.data() + connection.sent,
                                    relay::kPrefaceSize - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            connection.sent = static_cast<std::uint8_t>(connection.sent + n);
        } else if (errno != EINTR) {
            const int error = errno == EWOULDBLOCK ? EAGAIN : errno;
            if (error != EAGAIN) remove(connection.cookie);
            return error;
        }
    }
    settle(connection);
    return 0;
}

int connect_through(int fd, const relay::Endpoint& gateway, const relay::Endpoint& target) noexcept {
    Connection made;
    made.cookie = cookie_of(fd);
    int result = 0;
    if (ask_again(fd, gateway, target, made.cookie, result)) return result;

    result = real_connect_to(fd, gateway);
    int error = result == 0 ? 0 : errno;
    const int told = error;
    // Interrupted, or out of the time that SO_SNDTIMEO gives, the kernel goes on with it.
    if (error == EINPROGRESS) error = outcome_of(fd, kPatience_ms);
    if (error != 0 && error != EINPROGRESS && error != EINTR) {
        errno = error;
        return -1;
    }
    made.peer = target;
    made.stage = Stage::to_send;
    made.preface = preface_of(fd, target);
    const Locked locked;
    if (!add(made)) {
        shutdown(fd, SHUT_RDWR);  // without its preface the connection must not be used
        errno = ENOBUFS;
        return -1;
    }
    Connection* const kept = find(made.cookie);
    const int sent = error == 0 ? flush(fd, *kept) : EAGAIN;
    if (sent == EAGAIN) watch(fd, made.cookie);
    errno = sent == EAGAIN || sent == 0 ? told : sent;
    return errno == 0 ? 0 : -1;
}

bool may_write(int fd, int flags) noexcept {
    const KeepErrno keep;
    const std::uint64_t cookie = cookie_of(fd);
    if (cookie == 0) return true;
    const bool block = (flags & MSG_DONTWAIT) == 0 && !is_nonblocking(fd);
    const int limit = block ? timeout_of(fd, SO_SNDTIMEO) : 0;
    for (bool waited = false;; waited = true) {
        int error = 0;
        {
            const Locked locked;
            tidy_now_and_then();
            Connection* known = find(cookie);
            if (known == nullptr || known->stage != Stage::to_send) return true;
            error = flush(fd, *known);
        }
        // A broken pipe is for the program's own call to find, and its signal with it.
        if (error == 0 || error == EPIPE) return true;
        if (error != EAGAIN || !block || (waited && limit >= 0)) return keep.instead(error);
        wait_for(fd, POLLOUT, limit);
    }
}

}  // namespace mcastcoll::split
