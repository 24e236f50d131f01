#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "split/call.h"
#include "split/connections.h"
#include "split/keep_errno.h"
#include "split/locked.h"

namespace mcastcoll::split {
namespace {

int real_connect_to(int fd, const sites::Endpoint& to) noexcept {
    sockaddr_storage address;
    const socklen_t length = write_address(to, option_of(fd, SO_DOMAIN), address);
    if (length != 0) return real_connect(fd, reinterpret_cast<const sockaddr*>(&address), length);
    errno = EAFNOSUPPORT;
    return -1;
}

std::array<std::byte, gateway::kPrefaceSize> preface_of(int fd, const sites::Endpoint& target) noexcept {
    gateway::Preface preface;
    sockaddr_storage own;
    socklen_t length = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0)
        preface.source = sites::Endpoint::of(reinterpret_cast<const sockaddr*>(&own), length);
    preface.target = target;
    // The host's number is the end of its address, which is unique within a site.
    const std::size_t size = preface.source.address_size();
    for (std::size_t i = size < 4 ? 0 : size - 4; i < size; i++)
        preface.node = preface.node << 8 | std::to_integer<std::uint32_t>(preface.source.address[i]);
    preface.process = static_cast<std::uint32_t>(getpid());
    return gateway::encode_preface(preface);
}

// State of a connection attempt: 0 if connected, EINPROGRESS, or the error.
int outcome_of(int fd, int timeout_ms) noexcept {
    if (!wait_for(fd, POLLOUT, timeout_ms)) return EINPROGRESS;
    const int error = option_of(fd, SO_ERROR);
    return error < 0 ? errno : error;
}

// Sends the rest of a preface; call under Locked. Returns 0, EAGAIN, or the connection's error, and then the
// entry has been removed.
int flush(int fd, Connection& connection) noexcept {
    while (connection.sent < gateway::kPrefaceSize) {
        const ssize_t n = real_send(fd, connection.preface.data() + connection.sent,
                                    gateway::kPrefaceSize - connection.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
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

// Limit of connections watched by the thread below. Beyond it, the programs' first writes send the prefaces.
constexpr std::size_t kMax = 256;
constexpr int kLook_ms = 20;  // delay until the thread notices a new connection

struct Watched {
    int fd = -1;  // a duplicate: the program may close its own at any time
    std::uint64_t cookie = 0;
};

std::array<Watched, kMax> watched;
std::size_t watched_count = 0;
bool running = false;

void forget(std::size_t index) noexcept {
    close(watched[index].fd);
    watched[index] = watched[--watched_count];
}

// Handles the events of a watched connection, and stops watching it when its preface was sent or it has
// failed. Call under Locked.
void look_at(std::size_t index, short events) noexcept {
    Connection* known = find(watched[index].cookie);
    const bool waits = known != nullptr && known->stage == Stage::to_send;
    const bool failed = (events & (POLLERR | POLLHUP)) != 0;
    if (waits && failed) remove(watched[index].cookie);  // the program gets the error from its own call
    if (!waits || failed || flush(watched[index].fd, *known) != EAGAIN) forget(index);
}

void* watch_all(void*) {
    std::array<pollfd, kMax> polled;
    for (;;) {
        std::size_t count = 0;
        {
            const Locked locked;
            running = watched_count > 0;
            if (!running) return nullptr;
            for (; count < watched_count; count++) polled[count] = {watched[count].fd, POLLOUT, 0};
        }
        poll(polled.data(), count, kLook_ms);
        const Locked locked;
        // Other threads only append, so the polled entries are still at their indices.
        for (std::size_t i = count; i-- > 0;)
            if (polled[i].revents != 0) look_at(i, polled[i].revents);
    }
}

// Runs in a child of fork(), which does not have the thread that sends prefaces. The parent's thread sends
// them, since parent and child share the connections.
void in_child() noexcept {
    while (watched_count > 0) forget(watched_count - 1);
    running = false;
}

// Sends the prefaces of connections that were incomplete after connect(), in a thread, so that a program
// without writes gets an answer. The thread runs while there are such connections, and makes no call that the
// program could notice. Call under Locked. If no thread or descriptor is available, the program's first write
// sends the preface.
void watch(int fd, std::uint64_t cookie) noexcept {
    static const int prepared = pthread_atfork(nullptr, nullptr, in_child);
    if (prepared != 0 || watched_count == kMax) return;
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return;
    watched[watched_count++] = {copy, cookie};
    if (running) return;
    pthread_t thread;
    // The thread inherits the signal mask of its creator, whose signals Locked has blocked.
    running = pthread_create(&thread, nullptr, watch_all, nullptr) == 0;
    if (running)
        pthread_detach(thread);
    else
        forget(watched_count - 1);
}

// Whether the same socket connects to the same target again, as programs do to query the state of a
// connection.
bool connects_again(std::uint64_t cookie, const sites::Endpoint& target) noexcept {
    const Locked locked;
    const Connection* const known = find(cookie);
    if (known == nullptr || known->peer == target) return known != nullptr;
    remove(cookie);
    return false;
}

enum class Found {
    nothing,   // no data, or only a part of a preface
    ordinary,  // no preface: the gateway's host itself, an error, or the end
    preface,   // removed from the input
    unknown,   // a preface with an unsupported format
};

bool begins_as_preface(const std::byte* bytes, std::size_t length) noexcept {
    std::array<std::byte, 4> magic;
    wire::put(magic.data(), gateway::kPrefaceMagic);
    return std::memcmp(bytes, magic.data(), std::min(length, magic.size())) == 0;
}

// Removes a preface from the input, and sets `source`. Peeks first, so that data without a preface stay for
// the program.
Found take_preface(int fd, sites::Endpoint& source) noexcept {
    std::array<std::byte, gateway::kPrefaceSize> bytes;
    ssize_t n = 0;
    do n = real_recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Found::nothing : Found::ordinary;
    const auto length = static_cast<std::size_t>(n);
    if (length == 0 || !begins_as_preface(bytes.data(), length)) return Found::ordinary;
    if (length < bytes.size()) return Found::nothing;
    const auto preface = gateway::decode_preface(bytes);
    if (!preface) return Found::unknown;
    source = preface->source;
    real_recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return Found::preface;
}

Found wait_for_preface(int fd, sites::Endpoint& source) noexcept {
    if (!wait_for(fd, POLLIN, kTimeout_ms)) return Found::nothing;
    Found found = take_preface(fd, source);
    for (int i = 0; i < 2 * kTimeout_ms && found == Found::nothing; i++) {
        pause_a_little();
        found = take_preface(fd, source);
    }
    return found;
}

}  // namespace

int connect_through(int fd, const sites::Endpoint& gateway, const sites::Endpoint& target) noexcept {
    Connection made;
    made.cookie = cookie_of(fd);
    const bool again = connects_again(made.cookie, target);
    const int result = real_connect_to(fd, gateway);
    if (again) {
        const KeepErrno keep;
        const Locked locked;
        Connection* const known = find(made.cookie);
        if (result == 0 && known != nullptr && known->stage == Stage::to_send) flush(fd, *known);
        return result;
    }
    int error = result == 0 ? 0 : errno;
    const int first_error = error;
    // After a signal, or after SO_SNDTIMEO, the kernel continues to connect.
    if (error == EINPROGRESS) error = outcome_of(fd, kTimeout_ms);
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
    errno = sent == EAGAIN || sent == 0 ? first_error : sent;
    return errno == 0 ? 0 : -1;
}

bool may_write(int fd, int flags) noexcept {
    return may_go_on(fd, flags, Stage::to_send, [fd](Connection& known) {
        const int error = flush(fd, known);
        return error == EPIPE ? 0 : error;  // the program's own call returns the error, with its signal
    });
}

bool receive_accepted(int fd, sites::Endpoint& peer) noexcept {
    const KeepErrno keep;
    Connection accepted;
    accepted.cookie = cookie_of(fd);
    accepted.peer = peer;
    const Found found = wait_for_preface(fd, accepted.peer);
    if (found == Found::ordinary) return true;
    if (found == Found::unknown) return keep.instead(ECONNABORTED);
    if (found == Found::nothing) accepted.stage = Stage::to_take;
    peer = accepted.peer;
    const Locked locked;
    return add(accepted) || keep.instead(ENOBUFS);
}

bool may_read(int fd, int flags) noexcept {
    return may_go_on(fd, flags, Stage::to_take, [fd](Connection& known) {
        switch (take_preface(fd, known.peer)) {
            case Found::nothing:
                return EAGAIN;
            case Found::unknown:
                return ECONNABORTED;
            case Found::ordinary:
                remove(known.cookie);
                return 0;
            case Found::preface:
                settle(known);
                return 0;
        }
        return 0;
    });
}

}  // namespace mcastcoll::split
