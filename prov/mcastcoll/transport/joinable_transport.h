// A transport with groups that are joined one by one.
#pragma once

#include "base/result.h"
#include "transport/interface.h"
#include "transport/membership.h"
#include "transport/multicast_transport.h"

namespace mcastcoll::transport {

class JoinableTransport : public MulticastTransport {
  public:
    // May block while the subnet manager answers, for a bounded time.
    virtual Result<Membership> join(const SocketAddress& group) = 0;
    virtual bool has_joined(const SocketAddress& group) const = 0;
    // Whether one more address can be joined now, as far as this transport knows.
    virtual bool has_room() const = 0;

  private:
    friend class Membership;
    virtual void leave(const SocketAddress& group) = 0;
};

}  // namespace mcastcoll::transport
