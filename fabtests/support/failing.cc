#include "support/failing.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<std::uint64_t> left_until{0};  // 0: no call fails
std::atomic<std::uint64_t> failed{0};
std::atomic<bool> onward{false};
std::atomic<const char*> last{""};
std::atomic<std::int64_t> pieces{0};

// Strings and log messages allocate inside libstdc++ and libfmt. Only the provider uses these libraries while
// a call is to fail.
bool is_provider(const void* caller) {
    Dl_info info{};
    if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
    constexpr std::array kOurs{"libmcastcoll-fi", "libstdc++", "libfmt"};
    return std::any_of(kOurs.begin(), kOurs.end(),
                       [&](const char* name) { return std::strstr(info.dli_fname, name) != nullptr; });
}

// Returns whether this call must fail.
bool fails(const void* caller, const char* name) {
    if (left_until.load() == 0 || !is_provider(caller)) return false;
    const std::uint64_t left = left_until.load();
    if (left > 1) {
        --left_until;
        return false;
    }
    if (!onward) left_until = 0;
    ++failed;
    last = name;
    return true;
}

template <typename Function>
Function* real(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void* take(std::size_t bytes, const void* caller) {
    void* memory = fails(caller, "operator new") ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
    if (memory == nullptr) throw std::bad_alloc();
    ++pieces;
    return memory;
}

void give_back(void* memory) {
    if (memory == nullptr) return;
    --pieces;
    std::free(memory);
}

}  // namespace

// Descriptors that the provider has opened, indexed by number.
namespace {
std::array<std::atomic<bool>, 1024> made{};

int note(const void* caller, int descriptor) {
    if (descriptor >= 0 && static_cast<std::size_t>(descriptor) < made.size())
        made[static_cast<std::size_t>(descriptor)] = is_provider(caller);
    return descriptor;
}
}  // namespace

#define CALLER __builtin_return_address(0)
// Defines a replacement of a function that returns -1 on failure: FAILING(result, name, error, (parameters),
// (arguments)).
#define FAILING(result, name, error, parameters, arguments)                    \
    extern "C" __attribute__((visibility("default"))) result name parameters { \
        static auto* const function = real(&name, #name);                      \
        if (fails(CALLER, #name)) return errno = (error), -1;                  \
        return function arguments;                                             \
    }

// Like FAILING, for a function that opens a descriptor: fails with EMFILE, and records the descriptor.
#define MAKING(name, parameters, arguments)                                 \
    extern "C" __attribute__((visibility("default"))) int name parameters { \
        static auto* const function = real(&name, #name);                   \
        if (fails(CALLER, #name)) return errno = EMFILE, -1;                \
        return note(CALLER, function arguments);                            \
    }

MAKING(socket, (int domain, int type, int protocol) noexcept, (domain, type, protocol))
FAILING(int, bind, EACCES, (int fd, const sockaddr* address, socklen_t length) noexcept,
        (fd, address, length))
FAILING(int, listen, EADDRINUSE, (int fd, int backlog) noexcept, (fd, backlog))
FAILING(int, setsockopt, ENOBUFS, (int fd, int level, int name, const void* value, socklen_t length) noexcept,
        (fd, level, name, value, length))
FAILING(int, getsockopt, ENOBUFS, (int fd, int level, int name, void* value, socklen_t* length) noexcept,
        (fd, level, name, value, length))
FAILING(int, getsockname, ENOBUFS, (int fd, sockaddr* address, socklen_t* length) noexcept,
        (fd, address, length))
FAILING(int, connect, ENETUNREACH, (int fd, const sockaddr* address, socklen_t length), (fd, address, length))
MAKING(epoll_create1, (int flags) noexcept, (flags))
FAILING(int, epoll_ctl, ENOMEM, (int set, int what, int fd, epoll_event* event) noexcept,
        (set, what, fd, event))
MAKING(eventfd, (unsigned value, int flags) noexcept, (value, flags))
MAKING(timerfd_create, (clockid_t clock, int flags) noexcept, (clock, flags))
MAKING(shm_open, (const char* name, int flags, mode_t mode), (name, flags, mode))

// posix_fallocate() returns the error instead of setting errno.
extern "C" __attribute__((visibility("default"))) int posix_fallocate(int fd, off_t from, off_t bytes) {
    static auto* const function = real(&posix_fallocate, "posix_fallocate");
    return fails(CALLER, "posix_fallocate") ? ENOSPC : function(fd, from, bytes);
}

extern "C" __attribute__((visibility("default"))) void* mmap(void* at, std::size_t bytes, int protection,
                                                             int flags, int fd, off_t from) noexcept {
    static auto* const function = real(&mmap, "mmap");
    if (fails(CALLER, "mmap")) return errno = ENOMEM, MAP_FAILED;
    return function(at, bytes, protection, flags, fd, from);
}

__attribute__((visibility("default"))) void* operator new(std::size_t bytes) {
    return take(bytes, CALLER);
}
__attribute__((visibility("default"))) void* operator new[](std::size_t bytes) {
    return take(bytes, CALLER);
}
__attribute__((visibility("default"))) void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    if (fails(CALLER, "operator new")) return nullptr;
    ++pieces;
    return std::malloc(bytes != 0 ? bytes : 1);
}
__attribute__((visibility("default"))) void operator delete(void* memory) noexcept {
    give_back(memory);
}
__attribute__((visibility("default"))) void operator delete[](void* memory) noexcept {
    give_back(memory);
}
__attribute__((visibility("default"))) void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
__attribute__((visibility("default"))) void operator delete[](void* memory, std::size_t) noexcept {
    give_back(memory);
}

FAILING(int, timerfd_settime, EINVAL, (int fd, int flags, const itimerspec* value, itimerspec* old) noexcept,
        (fd, flags, value, old))
FAILING(int, ftruncate, ENOSPC, (int fd, off_t bytes) noexcept, (fd, bytes))
FAILING(int, fstat, EIO, (int fd, struct stat* found) noexcept, (fd, found))
FAILING(int, mkdir, ENOSPC, (const char* path, mode_t mode) noexcept, (path, mode))
FAILING(int, renameat, ENOSPC, (int from, const char* old, int to, const char* wanted) noexcept,
        (from, old, to, wanted))
FAILING(int, getifaddrs, ENOMEM, (ifaddrs * *list) noexcept, (list))
FAILING(ssize_t, getrandom, ENOSYS, (void* bytes, std::size_t length, unsigned flags), (bytes, length, flags))
FAILING(ssize_t, write, ENOSPC, (int fd, const void* bytes, std::size_t length), (fd, bytes, length))
FAILING(ssize_t, read, EIO, (int fd, void* bytes, std::size_t length), (fd, bytes, length))
FAILING(ssize_t, sendto, ENOBUFS,
        (int fd, const void* bytes, std::size_t length, int flags, const sockaddr* to, socklen_t size),
        (fd, bytes, length, flags, to, size))
FAILING(int, sendmmsg, ENOBUFS, (int fd, mmsghdr* messages, unsigned count, int flags),
        (fd, messages, count, flags))
FAILING(ssize_t, sendmsg, ENOBUFS, (int fd, const msghdr* message, int flags), (fd, message, flags))
FAILING(int, recvmmsg, ENOMEM, (int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout),
        (fd, messages, count, flags, timeout))

// Like FAILING, for a function that returns a pointer, null on failure.
#define WITHOUT(result, name, error, parameters, arguments)                    \
    extern "C" __attribute__((visibility("default"))) result name parameters { \
        static auto* const function = real(&name, #name);                      \
        if (fails(CALLER, #name)) return errno = (error), nullptr;             \
        return function arguments;                                             \
    }
WITHOUT(FILE*, fopen, EMFILE, (const char* path, const char* mode), (path, mode))
WITHOUT(DIR*, opendir, EMFILE, (const char* path), (path))
WITHOUT(char*, strdup, ENOMEM, (const char* text) noexcept, (text))

// open() has an optional third argument.
extern "C" __attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
    static auto* const function = real(&open, "open");
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (fails(CALLER, "open")) return errno = EMFILE, -1;
    return note(CALLER, function(path, flags, mode));
}
extern "C" __attribute__((visibility("default"))) int openat(int folder, const char* path, int flags, ...) {
    static auto* const function = real(&openat, "openat");
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (fails(CALLER, "openat")) return errno = EMFILE, -1;
    // closedir() may close the descriptor where this file cannot see the call.
    return function(folder, path, flags, mode);
}

MAKING(accept4, (int fd, sockaddr* from, socklen_t* length, int flags), (fd, from, length, flags))

extern "C" __attribute__((visibility("default"))) int close(int descriptor) {
    static auto* const function = real(&close, "close");
    if (descriptor >= 0 && static_cast<std::size_t>(descriptor) < made.size())
        made[static_cast<std::size_t>(descriptor)] = false;
    return function(descriptor);
}

namespace mcastcoll::fabtest {

std::size_t descriptors_in_use() {
    return static_cast<std::size_t>(std::count(made.begin(), made.end(), true));
}

void fail_call(std::uint64_t nth, Fails how) {
    failed = 0;
    onward = how == Fails::onward;
    left_until = nth;
}

std::uint64_t stop_failing() {
    left_until = 0;
    return failed;
}

const char* failed_call() {
    return last;
}

std::int64_t pieces_of_memory() {
    return pieces;
}

}  // namespace mcastcoll::fabtest
