// Calls the C library's functions that this library interposes; waits with a bound; converts endpoints to
// socket addresses.
#pragma once

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>

#include "sites/endpoint.h"

namespace mcastcoll::split {

// Upper bound of connection set-up inside a site, unless packets are lost. Slower connections continue in a
// thread, or with the program's first write.
inline constexpr int kTimeout_ms = 50;

// Resolved on the first call: constructors of other libraries may call interposed functions before ours run.
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
    bool instead(int error) const noexcept {  // returns false, so that the caller can return the result
        before_ = error;
        return false;
    }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    mutable int before_;
};

// Waits for one of the events, an error or an end, at most this many milliseconds; -1: without bound. Signals
// do not end the wait.
bool wait_for(int fd, short events, int milliseconds) noexcept;
// Waits for the rest of a preface: with a part already readable, poll() would return at once.
void pause_a_little() noexcept;

// A numeric, nonnegative socket option; -1 with errno on error.
int option_of(int fd, int option) noexcept;

// Writes an endpoint as an address of this domain (SO_DOMAIN) and returns its length; 0 if the domain cannot
// express the endpoint. An IPv4 address on an IPv6 socket becomes a mapped address.
socklen_t write_address(const sites::Endpoint& endpoint, int domain, sockaddr_storage& address) noexcept;

}  // namespace mcastcoll::split
