// Endpoints as sockets have them: an IPv4 address on an IPv6 socket is a mapped one.
#pragma once

#include <sys/socket.h>

#include "relay/endpoint.h"

namespace mcastcoll::split {

// Of the socket: AF_INET, AF_INET6 or something else, -1 if it is no socket.
int domain_of(int fd) noexcept;

// What a socket of this domain takes for an endpoint; 0 if it cannot have it.
socklen_t write_address(const relay::Endpoint& endpoint, int domain, sockaddr_storage& address) noexcept;

// As accept() and getpeername() do: as much as there is room for, and how much there would have been.
void hand_out(const sockaddr_storage& address, socklen_t length, sockaddr* to, socklen_t* room) noexcept;

relay::Endpoint own_endpoint(int fd) noexcept;

}  // namespace mcastcoll::split
