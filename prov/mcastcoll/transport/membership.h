// A counted share of a joined address. When the last share is destroyed, the transport leaves the address.
// The transport must outlive the shares.
#pragma once

#include <utility>

#include "transport/socket_address.h"

namespace mcastcoll::transport {

class JoinableTransport;

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

}  // namespace mcastcoll::transport
