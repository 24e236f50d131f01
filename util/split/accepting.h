// The accepting side: a gateway that connects for a process of another site sends the preface first, and the
// program must not see it.
//
// The preface follows the connection at once, so that accept() usually finds it or waits a moment for it;
// where nothing has come in time, the first call that reads looks again.
#pragma once

#include "relay/endpoint.h"

namespace mcastcoll::split {

// Of a connection that came from the gateway's address: takes the preface and puts the true peer in place of
// the gateway's. False, with errno, if what came is a preface that this library does not understand.
bool receive_accepted(int fd, relay::Endpoint& peer) noexcept;

// Whether the program may read now; otherwise errno says why not.  May wait, where the socket blocks.
bool may_read(int fd, int flags) noexcept;

}  // namespace mcastcoll::split
