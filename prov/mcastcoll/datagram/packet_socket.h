// What reliable messages ask of sockets: rows of packets that the kernel cuts and puts together, and a
// filter.
#pragma once

#include "feed/packet.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi::datagram {

// Sends packets of `unit` bytes each, or a single one. 0, or errno.
int transmit(int socket, Bytes packets, std::size_t unit, const SocketAddress& to);
// That errno says that there is no room now.
bool is_full(int error);
// The kernel drops copies of our own packets, and data for who only sends.
void leave_out(int socket, feed::MemberId self, bool receives);
// How many packets of that size wait in the socket's receive buffer at most.
std::size_t room_for(int socket, std::size_t packet, std::size_t unknown);

}  // namespace mcastcoll::ofi::datagram
