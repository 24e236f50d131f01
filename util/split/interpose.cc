// The interposed calls. Calls that make connections check the destination. Calls that move bytes pass at
// once, unless the preface of some connection is outstanding, which is rare and short.
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "sites/sites.h"
#include "split/call.h"
#include "split/connections.h"
#include "split/keep_errno.h"
#include "split/locked.h"
#include "split/real.h"

#define MCC_EXPORT extern "C" __attribute__((visibility("default")))

using namespace mcastcoll;
using namespace mcastcoll::split;

namespace {

constexpr int kBadSites = 126;  // the status with which shells report a program that cannot be run

// Read once, when the library is loaded, and never destroyed, because other threads may still connect while
// the process exits. If the own site is unknown, the library does nothing in this process.
const sites::Sites* sites = nullptr;
const sites::Site* own = nullptr;
bool verbose = false;

// An unusable sites file ends the program: without the file, connections would go to wrong places unnoticed.
[[noreturn]] void end(const std::string& why) {
    std::fprintf(stderr, "libmcastcoll-split: %s; the program is not run\n", why.c_str());
    _exit(kBadSites);
}

// Returns the site that contains one of this host's addresses. On a host in several sites, such as a gateway,
// MCASTCOLL_SITE must name the site instead.
const sites::Site* site_here() {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) end(std::string("cannot list this host's addresses: ") + std::strerror(errno));
    const sites::Site* found = nullptr;
    for (const ifaddrs* one = all; one != nullptr && found == nullptr; one = one->ifa_next)
        found = sites->site_of(sites::Endpoint::of(one->ifa_addr, sizeof(sockaddr_in6)));
    freeifaddrs(all);
    return found;
}

__attribute__((constructor)) void load() try {
    const KeepErrno keep;
    const char* const path = secure_getenv("MCASTCOLL_SITES");
    const char* const name = secure_getenv("MCASTCOLL_SITE");
    const char* const say = secure_getenv("MCASTCOLL_SPLIT_VERBOSE");
    if (path == nullptr || *path == '\0') return;
    verbose = say != nullptr && *say != '\0' && std::strcmp(say, "0") != 0;
    auto read = sites::read_sites(path);
    if (!read) end(read.error().message);
    sites = new sites::Sites(std::move(read.value()));
    if (name == nullptr || *name == '\0') {
        own = site_here();
    } else {
        own = sites->named(name);
        if (own == nullptr)
            end(std::string(path) + " has no site \"" + name + "\", which MCASTCOLL_SITE names");
    }
    if (verbose && own == nullptr)
        std::fprintf(stderr,
                     "libmcastcoll-split[%d]: no site of %s contains an address of this host: no connection "
                     "of this process uses a gateway; MCASTCOLL_SITE can name the site\n",
                     getpid(), path);
} catch (const std::bad_alloc&) {
    end("no memory for the sites file");
}

// The own site's gateway if the target is in another site; nullptr if the connection needs no gateway.
// Gateways connect to each other directly.
const sites::Endpoint* gateway_to(const sites::Endpoint& target) noexcept {
    const sites::Site* const site = sites->site_of(target);
    const bool local = site == nullptr || site == own || target == site->gateway || target == site->wan;
    return local ? nullptr : &own->gateway;
}

// Prints a line on standard error if MCASTCOLL_SPLIT_VERBOSE is set.
void print_verbose(const char* what, int fd, const sites::Endpoint& peer) noexcept try {
    if (!verbose) return;
    const KeepErrno keep;
    std::fprintf(stderr, "libmcastcoll-split[%d]: descriptor %d: %s %s\n", getpid(), fd, what,
                 peer.to_string().c_str());
} catch (const std::bad_alloc&) {
    return;
}

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

// Writes an address like accept() and getpeername(): as much as fits, and the full length.
void hand_out(const sockaddr_storage& address, socklen_t length, sockaddr* to, socklen_t* room) noexcept {
    if (to == nullptr || room == nullptr) return;
    std::memcpy(to, &address, std::min(length, *room));
    *room = length;
}

int accept_through(int fd, sockaddr* address, socklen_t* room, int flags) noexcept {
    // The kernel reports invalid arguments.
    if (own == nullptr || (address != nullptr && room == nullptr))
        return real_accept4(fd, address, room, flags);
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    const int accepted = real_accept4(fd, reinterpret_cast<sockaddr*>(&peer), &length, flags);
    if (accepted < 0) return accepted;
    sites::Endpoint source = sites::Endpoint::of(reinterpret_cast<const sockaddr*>(&peer), length);
    if (source.same_host(own->gateway) && is_tcp(accepted)) {
        const sites::Endpoint gateway = source;
        if (!receive_accepted(accepted, source)) {
            const KeepErrno keep;
            close(accepted);
            return -1;
        }
        if (source != gateway) {
            print_verbose("relayed from", accepted, source);
            const socklen_t true_length = write_address(source, peer.ss_family, peer);
            if (true_length != 0) length = true_length;
        }
    }
    hand_out(peer, length, address, room);
    return accepted;
}

// The peer's address to show to the program instead of the kernel's answer, which names the gateway. Invalid
// if the kernel's answer is right.
sites::Endpoint true_peer(int fd) noexcept {
    if (own == nullptr) return {};
    if (!nothing_unsettled()) may_read(fd, MSG_DONTWAIT);  // takes a preface that has arrived
    const std::uint64_t cookie = cookie_of(fd);
    const Locked locked;
    const Connection* const known = cookie == 0 ? nullptr : find(cookie);
    return known == nullptr ? sites::Endpoint{} : known->peer;
}

}  // namespace

MCC_EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
    if (own == nullptr) return real_connect(fd, address, length);
    const sites::Endpoint target = sites::Endpoint::of(address, length);
    const sites::Endpoint* const gateway = gateway_to(target);
    if (gateway == nullptr || !is_tcp(fd)) return real_connect(fd, address, length);
    print_verbose("through the gateway to", fd, target);
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
    const sites::Endpoint peer = true_peer(fd);
    sockaddr_storage shown;
    const socklen_t length = peer.valid() ? write_address(peer, option_of(fd, SO_DOMAIN), shown) : 0;
    if (length == 0) return result;
    *room = there;
    hand_out(shown, length, address, room);
    return result;
}

// The remaining calls differ only in names and arguments: check whether the socket is ready for the program,
// then call.
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

// Programs built with checks of buffer sizes call these functions.
MCC_MOVE(ssize_t, __read_chk, (int fd, void* to, size_t size, size_t room), read_now(fd), fd, to, size, room)
MCC_MOVE(ssize_t, __recv_chk, (int fd, void* to, size_t size, size_t room, int flags), read_now(fd, flags),
         fd, to, size, room, flags)
MCC_MOVE(ssize_t, __recvfrom_chk,
         (int fd, void* to, size_t size, size_t room, int flags, sockaddr* from, socklen_t* length),
         read_now(fd, flags), fd, to, size, room, flags, from, length)
