// Which connections lead to another site: the sites file, and which site this process is in.
//
// Read once, when the library is loaded; a file that cannot be used ends the program, since going on would
// mean to go astray in silence.
#pragma once

#include "relay/endpoint.h"

namespace mcastcoll::split {

// Whether there is anything for the library to do in this process.
bool routing() noexcept;

// The own site's gateway if the target is in another site, nullptr if the connection is nothing to the
// library.
const relay::Endpoint* gateway_to(const relay::Endpoint& target) noexcept;

// Whether a connection from there may be one that the own gateway relays.
bool from_gateway(const relay::Endpoint& peer) noexcept;

// With MCASTCOLL_SPLIT_VERBOSE: a line on standard error.
void tell(const char* what, int fd, const relay::Endpoint& peer) noexcept;

}  // namespace mcastcoll::split
