// The C library's own functions past ours of the same name, waiting with a bound, and endpoints as sockets
// have them.
#pragma once

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>

#include "relay/endpoint.h"

namespace mcastcoll::split {

// What a connection inside a site needs at most, with a lost packet or two left out: longer, and others go on
// with it.
inline constexpr int kPatience_ms = 50;

// Each is looked up when it is first needed: other libraries' constructors may call them before ours runs.
template <typename Function>
class Real {
  public:
    constexpr explicit Real(const char* name) : name_(name) {}

    template <typename... Arguments>
    auto operator()(Arguments... arguments) {
        Function* found = function_.load(std::memory_order_acquire);
        if (found == nullptr) {
            found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
            function_.store(found, std::memory_order_release);
        }
        return found(arguments...);
    }

  private:
    const char* const name_;
    std::atomic<Function*> function_{nullptr};
};

extern Real<int(int, const sockaddr*, socklen_t)> real_connect;
extern Real<ssize_t(int, const void*, size_t, int)> real_send;
extern Real<ssize_t(int, void*, size_t, int)> real_recv;

class KeepErrno {
  public:
    KeepErrno() noexcept : before_(errno) {}
    ~KeepErrno() { errno = before_; }
    bool instead(int error) const noexcept {  // false, for the caller to hand on
        before_ = error;
        return false;
    }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    mutable int before_;
};

// Whether one of the events, an error or an end came within so many milliseconds; -1: without bound.  Signals
// do not end it.
bool wait_for(int fd, short events, int milliseconds) noexcept;
// For a part of a preface to become a whole: polling would return at once.
void pause_a_little() noexcept;

// An option of the socket that is a number, not negative; -1 with errno if there is none.
int option_of(int fd, int option) noexcept;

// What a socket of this domain (SO_DOMAIN) takes for an endpoint; 0 if it cannot have it.  An IPv4 address on
// an IPv6 socket is a mapped one.
socklen_t write_address(const relay::Endpoint& endpoint, int domain, sockaddr_storage& address) noexcept;

}  // namespace mcastcoll::split
