// What libfabric calls on a datagram endpoint: tables, arguments, and what must not throw.
#pragma once

namespace mcastcoll::ofi::datagram {

class Endpoint;

void set_calls(Endpoint& endpoint);

}  // namespace mcastcoll::ofi::datagram
