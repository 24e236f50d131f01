// What passes on a connection to or from the own site's gateway before the program's own bytes.
//
// Connecting, the preface must be the first bytes, whoever writes first, and it must be sent even if the
// program never writes.  A gateway is in the same site, so that its connection is usually made within the
// call, also for a socket that does not block; where it is not, a thread or the program's first write sends
// the preface, whichever comes first.
//
// Accepting, a gateway that connects for a process of another site sends the preface first, and the program
// must not see it.  It follows the connection at once, so that accept() usually finds it or waits a moment
// for it; where nothing has come in time, the first call that reads looks again.
#pragma once

#include "relay/endpoint.h"

namespace mcastcoll::split {

// As connect(2): a connection to the target, which is in another site, by way of the gateway.
int connect_through(int fd, const relay::Endpoint& gateway, const relay::Endpoint& target) noexcept;

// Of a connection that came from the gateway's address: takes the preface and puts the true peer in place of
// the gateway's. False, with errno, if what came is a preface that this library does not understand.
bool receive_accepted(int fd, relay::Endpoint& peer) noexcept;

// Whether the program may write or read now; otherwise errno says why not.  May wait, where the socket
// blocks.
bool may_write(int fd, int flags) noexcept;
bool may_read(int fd, int flags) noexcept;

}  // namespace mcastcoll::split
