// A transport whose addresses are joined and left while it is open, and shares of what is joined. Memberships
// belong to addresses, not to groups of members: whoever wants an address gets a counted share of it.
#pragma once

#include <utility>

#include "base/result.h"
#include "transport/multicast_transport.h"

namespace mcastcoll {

class JoinableTransport;

// A share of a joined address; the last one to go leaves it. The transport lives longer.
class Membership {
  public:
    Membership() = default;
    Membership(JoinableTransport& hub, const SocketAddress& group) : hub_(&hub), group_(group) {}
    Membership(Membership&& other) noexcept
        : hub_(std::exchange(other.hub_, nullptr)), group_(other.group_) {}
    Membership& operator=(Membership&& other) noexcept {
        std::swap(hub_, other.hub_);
        std::swap(group_, other.group_);
        return *this;
    }
    ~Membership();
    const SocketAddress& group() const { return group_; }

  private:
    JoinableTransport* hub_ = nullptr;
    SocketAddress group_;
};

class JoinableTransport : public MulticastTransport {
  public:
    // May take as long as the network's management does, a bounded time.
    virtual Result<Membership> join(const SocketAddress& group) = 0;
    virtual bool has_joined(const SocketAddress& group) const = 0;
    // Whether another address could be joined now, as far as can be told.
    virtual bool has_room() const = 0;

  private:
    friend class Membership;
    virtual void leave(const SocketAddress& group) = 0;
};

inline Membership::~Membership() {
    if (hub_ != nullptr) hub_->leave(group_);
}

}  // namespace mcastcoll
