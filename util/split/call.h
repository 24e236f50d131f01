// The real calls that more than one part needs, and waiting with a bound.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>

#include "split/real.h"

namespace mcastcoll::split {

// What a connection inside a site needs at most, with a lost packet or two left out: longer, and others go on
// with it.
inline constexpr int kPatience_ms = 50;

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

bool is_nonblocking(int fd) noexcept;

// How long a blocking call may take by SO_RCVTIMEO or SO_SNDTIMEO, in milliseconds; -1 without.
int timeout_of(int fd, int option) noexcept;

}  // namespace mcastcoll::split
