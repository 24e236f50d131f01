// Sockets for the split library's tests.  A call that fails unexpectedly ends the process and prints where.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sites/endpoint.h"

#define MUST(condition)                                                                       \
    do {                                                                                      \
        errno = 0;                                                                            \
        if (!(condition)) mcastcoll::fabtest::end_for(#condition, __FILE__, __LINE__, errno); \
    } while (0)

namespace mcastcoll::fabtest {

[[noreturn]] void end_for(const char* what, const char* file, int line, int error);

// Sites and gateways of the tests, all on the loopback interface.
inline constexpr const char *kClientHost = "127.11.0.2", *kServerHost = "127.12.0.2",
                            *kGatewayA = "127.11.0.1", *kGatewayB = "127.12.0.1";

sites::Endpoint endpoint(const std::string& host, std::uint16_t port);
sites::Endpoint own(int fd);
sites::Endpoint peer(int fd);  // as getpeername() returns it

// Opens a TCP socket bound to this host; with domain AF_INET6, to the host's IPv4-mapped address.
int bound_socket(const std::string& host, int domain = AF_INET, int flags = 0);
int listening(const std::string& host, int domain = AF_INET, int backlog = 16);
int connect_to(int fd, const sites::Endpoint& to, int domain = AF_INET);  // as connect(2)
int accept_from(int listener, sites::Endpoint& from, int flags = 0);      // as accept4(2)

void send_all(int fd, const void* from, std::size_t size);
std::size_t receive_all(int fd, void* to, std::size_t size);  // fewer bytes at the end of the stream

// Waits for one of the events, and returns whether it came in time; the time limit ends only failing tests.
bool comes(int fd, short events, int milliseconds = 30000);

// The byte at an offset of a stream.
inline std::byte pattern(std::uint64_t stream, std::uint64_t offset) {
    const std::uint64_t x = offset * 0x9e3779b97f4a7c15U + stream * 0xc2b2ae3d27d4eb4fU;
    return static_cast<std::byte>((x ^ (x >> 29)) >> 17);
}

}  // namespace mcastcoll::fabtest
