#include "transport/watch_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include "base/system.h"
#include "wire/bytes.h"

namespace mcastcoll::transport {
namespace {

constexpr int kBacklog = 4096;  // limited by the kernel to net.core.somaxconn
constexpr Nanoseconds kLookInterval = Nanoseconds::from_ms(1000);
constexpr std::size_t kTokenBytes = sizeof(std::uint32_t);

}  // namespace

// All listeners of this process, and a lock that fork() takes, so that no list of descriptors changes during
// fork().
struct ForkedListeners {
    std::mutex mutex;
    std::vector<WatchListener*> all;

    static ForkedListeners& of_process() {
        static ForkedListeners* const one = [] {
            (void)::pthread_atfork([] { of_process().mutex.lock(); }, [] { of_process().mutex.unlock(); },
                                   [] { of_process().in_child(); });
            return new ForkedListeners;  // never destroyed: fork handlers may run until the process ends
        }();
        return *one;
    }
    void in_child() {
        for (const WatchListener* const one : all) one->let_go();
        all.clear();  // a grandchild may have other files under the same numbers
        mutex.unlock();
    }
};

WatchListener::~WatchListener() {
    if (!listener_.valid()) return;
    ForkedListeners& listeners = ForkedListeners::of_process();
    const std::lock_guard lock(listeners.mutex);
    std::erase(listeners.all, this);
    listener_.reset();
    held_.clear();
}

Result<SocketAddress> WatchListener::open(const SocketAddress& local, std::uint32_t token) {
    const SocketAddress at = local.with_port(0);
    FileDescriptor opened(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!opened.valid())
        return system_error(errno, "cannot open the socket by which peers watch this process");
    if (::bind(opened.get(), at.data(), at.size()) != 0 || ::listen(opened.get(), kBacklog) != 0)
        return system_error(errno, fmt::format("cannot listen at {}, where peers watch this process", at));
    auto bound = SocketAddress::of_socket(opened.get());
    if (!bound) return bound.error();
    ForkedListeners& listeners = ForkedListeners::of_process();
    const std::lock_guard lock(listeners.mutex);
    listeners.all.push_back(this);
    listener_ = std::move(opened);
    token_ = token;
    return bound;
}

// Calls only functions permitted between fork() and exec().
void WatchListener::let_go() const {
    const int nothing = ::eventfd(0, EFD_CLOEXEC);
    const auto replace = [&](const FileDescriptor& socket) {
        if (nothing < 0 || ::dup3(nothing, socket.get(), O_CLOEXEC) < 0) ::close(socket.get());
    };
    replace(listener_);
    for (const FileDescriptor& one : held_) replace(one);
    if (nothing >= 0) ::close(nothing);
}

// The kernel reports the length and the limit of a listener's backlog in two fields of TCP_INFO, which have
// other meanings for connections: tcpi_unacked and tcpi_sacked.
void WatchListener::look_after(Nanoseconds now) {
    if (!listener_.valid() || now < look_at_) return;
    look_at_ = now + kLookInterval;
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(listener_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    if (info.tcpi_unacked * 4 >= info.tcpi_sacked) make_room(info.tcpi_unacked);
}

void WatchListener::make_room(std::uint32_t waiting) {
    const std::lock_guard lock(ForkedListeners::of_process().mutex);
    std::erase_if(held_, [](const FileDescriptor& held) { return !is_connection_open(held.get()); });
    for (; waiting > 0 && held_.size() < kMaxHeld; --waiting) {
        FileDescriptor next(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!next.valid()) return;
        if (is_watcher(next)) held_.push_back(std::move(next));
    }
}

bool WatchListener::is_watcher(const FileDescriptor& connection) const {
    std::array<std::byte, kTokenBytes> token;
    const ssize_t got = ::recv(connection.get(), token.data(), token.size(), MSG_DONTWAIT);
    return got == static_cast<ssize_t>(token.size()) && wire::get<std::uint32_t>(token.data()) == token_ &&
           is_connection_open(connection.get());
}

int send_watch_token(int connection, std::uint32_t token) {
    std::array<std::byte, kTokenBytes> bytes;
    wire::put(bytes.data(), token);
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno;
    return sent == static_cast<ssize_t>(bytes.size()) ? 0 : EMSGSIZE;
}

bool is_connection_open(int descriptor) {
    std::array<std::byte, 256> ignored;
    for (int turn = 0; turn < 4; ++turn) {
        const ssize_t got = ::recv(descriptor, ignored.data(), ignored.size(), MSG_DONTWAIT);
        if (got > 0) continue;
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    }
    return true;
}

}  // namespace mcastcoll::transport
