// The calls that stand before the C library's.  Those that make connections look where they lead; those that
// move bytes pass at once unless some connection's preface has not gone through yet, which is rare and short.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "split/call.h"
#include "split/ledger.h"
#include "split/prefaces.h"
#include "split/routes.h"

#define MCC_EXPORT extern "C" __attribute__((visibility("default")))

using namespace mcastcoll;
using namespace mcastcoll::split;

namespace {

bool is_tcp(int fd) noexcept {
    return option_of(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

bool nothing_unsettled() noexcept {
    return unsettled.load(std::memory_order_relaxed) == 0;
}
bool write_now(int fd, int flags = 0) noexcept {
    return nothing_unsettled() || may_write(fd, flags);
}
bool read_now(int fd, int flags = 0) noexcept {
    return nothing_unsettled() || may_read(fd, flags);
}

constinit Real<int(int, sockaddr*, socklen_t*, int)> real_accept4{"accept4"};
constinit Real<int(int, sockaddr*, socklen_t*)> real_getpeername{"getpeername"};

// As accept() and getpeername() do: as much as there is room for, and how much there would have been.
void hand_out(const sockaddr_storage& address, socklen_t length, sockaddr* to, socklen_t* room) noexcept {
    if (to == nullptr || room == nullptr) return;
    std::memcpy(to, &address, std::min(length, *room));
    *room = length;
}

int accept_through(int fd, sockaddr* address, socklen_t* room, int flags) noexcept {
    // With a wrong address it is the kernel that says so.
    if (!routing() || (address != nullptr && room == nullptr)) return real_accept4(fd, address, room, flags);
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    const int accepted = real_accept4(fd, reinterpret_cast<sockaddr*>(&peer), &length, flags);
    if (accepted < 0) return accepted;
    relay::Endpoint source = relay::Endpoint::of(reinterpret_cast<const sockaddr*>(&peer), length);
    if (source.valid() && from_gateway(source) && is_tcp(accepted)) {
        const relay::Endpoint gateway = source;
        if (!receive_accepted(accepted, source)) {
            const KeepErrno keep;
            close(accepted);
            return -1;
        }
        if (source != gateway) {
            tell("relayed from", accepted, source);
            const socklen_t true_length = write_address(source, peer.ss_family, peer);
            if (true_length != 0) length = true_length;
        }
    }
    hand_out(peer, length, address, room);
    return accepted;
}

// The peer as the program knows it; invalid if the kernel knows best.
relay::Endpoint true_peer(int fd) noexcept {
    if (entries.load(std::memory_order_relaxed) == 0) return {};
    if (!nothing_unsettled()) may_read(fd, MSG_DONTWAIT);  // to learn it, if it has come
    const std::uint64_t cookie = cookie_of(fd);
    const Locked locked;
    const Connection* const known = cookie == 0 ? nullptr : find(cookie);
    return known == nullptr ? relay::Endpoint{} : known->peer;
}

}  // namespace

MCC_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
    if (!routing()) return real_connect(fd, address, length);
    const relay::Endpoint target = relay::Endpoint::of(address, length);
    const relay::Endpoint* const gateway = target.valid() ? gateway_to(target) : nullptr;
    if (gateway == nullptr || !is_tcp(fd)) return real_connect(fd, address, length);
    tell("through the gateway to", fd, target);
    return connect_through(fd, *gateway, target);
}

MCC_EXPORT int accept(int fd, sockaddr* address, socklen_t* room) {
    return accept_through(fd, address, room, 0);
}

MCC_EXPORT int accept4(int fd, sockaddr* address, socklen_t* room, int flags) {
    return accept_through(fd, address, room, flags);
}

MCC_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* room) noexcept {
    const socklen_t there = address == nullptr || room == nullptr ? 0 : *room;
    const int result = real_getpeername(fd, address, room);
    if (result != 0 || there == 0) return result;
    const relay::Endpoint peer = true_peer(fd);
    sockaddr_storage shown;
    const socklen_t length = peer.valid() ? write_address(peer, option_of(fd, SO_DOMAIN), shown) : 0;
    if (length == 0) return result;
    *room = there;
    hand_out(shown, length, address, room);
    return result;
}

// The rest only differs in names and arguments: look whether the socket is ready for the program, then go on.
#define MCC_MOVE(result, name, parameters, ready, ...)           \
    namespace {                                                  \
    constinit Real<result parameters> real_before_##name{#name}; \
    }                                                            \
    MCC_EXPORT result name parameters {                          \
        if (!(ready)) return -1;                                 \
        return real_before_##name(__VA_ARGS__);                  \
    }

MCC_MOVE(ssize_t, write, (int fd, const void* from, size_t size), write_now(fd), fd, from, size)
MCC_MOVE(ssize_t, writev, (int fd, const iovec* parts, int count), write_now(fd), fd, parts, count)
MCC_MOVE(ssize_t, send, (int fd, const void* from, size_t size, int flags), write_now(fd, flags), fd, from,
         size, flags)
MCC_MOVE(ssize_t, sendto,
         (int fd, const void* from, size_t size, int flags, const sockaddr* to, socklen_t length),
         write_now(fd, flags), fd, from, size, flags, to, length)
MCC_MOVE(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), write_now(fd, flags), fd, message,
         flags)
MCC_MOVE(int, sendmmsg, (int fd, mmsghdr* messages, unsigned count, int flags), write_now(fd, flags), fd,
         messages, count, flags)
MCC_MOVE(ssize_t, sendfile, (int to, int from, off_t* offset, size_t size) noexcept, write_now(to), to, from,
         offset, size)
MCC_MOVE(ssize_t, sendfile64, (int to, int from, off64_t* offset, size_t size) noexcept, write_now(to), to,
         from, offset, size)
MCC_MOVE(ssize_t, splice,
         (int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size, unsigned flags),
         read_now(from) && write_now(to), from, from_offset, to, to_offset, size, flags)

MCC_MOVE(ssize_t, read, (int fd, void* to, size_t size), read_now(fd), fd, to, size)
MCC_MOVE(ssize_t, readv, (int fd, const iovec* parts, int count), read_now(fd), fd, parts, count)
MCC_MOVE(ssize_t, recv, (int fd, void* to, size_t size, int flags), read_now(fd, flags), fd, to, size, flags)
MCC_MOVE(ssize_t, recvfrom, (int fd, void* to, size_t size, int flags, sockaddr* from, socklen_t* room),
         read_now(fd, flags), fd, to, size, flags, from, room)
MCC_MOVE(ssize_t, recvmsg, (int fd, msghdr* message, int flags), read_now(fd, flags), fd, message, flags)
MCC_MOVE(int, recvmmsg, (int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit),
         read_now(fd, flags), fd, messages, count, flags, limit)

// What programs call that were built with checks of their buffers' sizes.
MCC_MOVE(ssize_t, __read_chk, (int fd, void* to, size_t size, size_t room), read_now(fd), fd, to, size, room)
MCC_MOVE(ssize_t, __recv_chk, (int fd, void* to, size_t size, size_t room, int flags), read_now(fd, flags),
         fd, to, size, room, flags)
MCC_MOVE(ssize_t, __recvfrom_chk,
         (int fd, void* to, size_t size, size_t room, int flags, sockaddr* from, socklen_t* length),
         read_now(fd, flags), fd, to, size, room, flags, from, length)
