// The connecting side: to the own site's gateway, which hears first where the connection is to lead.
//
// The preface must be the first bytes, whoever writes first, and it must be sent even if the program never
// writes.  A gateway is in the same site, so that its connection is usually made within the call, also for a
// socket that does not block; where it is not, the waiter or the program's first write sends the preface,
// whichever comes first.
#pragma once

#include "split/ledger.h"

namespace mcastcoll::split {

// As connect(2): a connection to the target, which is in another site, by way of the gateway.
int connect_through(int fd, const relay::Endpoint& gateway, const relay::Endpoint& target) noexcept;

// Sends what is left of a preface; under Locked.  0, EAGAIN, or what the connection failed of, when its entry
// is gone.
int flush(int fd, Connection& connection) noexcept;

// Whether the program may write now; otherwise errno says why not.  May wait, where the socket blocks.
bool may_write(int fd, int flags) noexcept;

}  // namespace mcastcoll::split
