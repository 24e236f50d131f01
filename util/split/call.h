// Calls the C library's functions that this library interposes; waits with a bound; converts endpoints to
// socket addresses.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include "sites/endpoint.h"
#include "split/real.h"

namespace mcastcoll::split {

// How long connect() waits for the gateway, and accept() for a preface: longer than connection set-up inside
// a site, unless packets are lost. Later the preface passes in a thread, or with the program's first write or
// read.
inline constexpr int kTimeout_ms = 50;

extern Real<int(int, const sockaddr*, socklen_t)> real_connect;
extern Real<ssize_t(int, const void*, size_t, int)> real_send;
extern Real<ssize_t(int, void*, size_t, int)> real_recv;

// Waits for one of the poll() events, an error or an end, at most `milliseconds`; -1: without bound. Signals
// do not end the wait.
bool wait_for(int fd, short events, int milliseconds) noexcept;
// Sleeps a moment while the rest of a preface is missing: poll() would return at once for the part that has
// arrived.
void pause_a_little() noexcept;

// Returns a nonnegative socket option of level SOL_SOCKET; -1 with errno on error.
int option_of(int fd, int option) noexcept;

// Writes an endpoint as an address of this domain (SO_DOMAIN) and returns its length; 0 if the domain cannot
// express the endpoint. An IPv4 address on an IPv6 socket becomes a mapped address.
socklen_t write_address(const sites::Endpoint& endpoint, int domain, sockaddr_storage& address) noexcept;

}  // namespace mcastcoll::split
