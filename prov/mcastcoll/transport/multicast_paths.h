// Two ways to multicast behind one face: UDP, and UD over RDMA. A group's address says which: those of UD
// have no port. UD is what is preferred, UDP what serves those who cannot.
#pragma once

#include <memory>

#include "base/file_descriptor.h"
#include "transport/multicast_transport.h"

namespace mcastcoll {

class MulticastPaths final : public JoinableTransport {
  public:
    static Result<std::unique_ptr<MulticastPaths>> open(std::unique_ptr<JoinableTransport> udp,
                                                        std::unique_ptr<JoinableTransport> verbs);

    Result<Membership> join(const SocketAddress& group) override { return path(group).join(group); }
    bool has_joined(const SocketAddress& group) const override { return path(group).has_joined(group); }
    bool has_room() const override { return udp_->has_room(); }
    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override {
        return path(to.group).send(datagrams, to);
    }
    // Takes at most a batch from each.
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    int descriptor() const override { return both_.get(); }
    bool prepare_wait() override;
    std::size_t max_payload() const override;
    MulticastCounters counters() const override;

  private:
    MulticastPaths(std::unique_ptr<JoinableTransport> udp, std::unique_ptr<JoinableTransport> verbs)
        : udp_(std::move(udp)), verbs_(std::move(verbs)) {}
    JoinableTransport& path(const SocketAddress& group) const { return group.port() == 0 ? *verbs_ : *udp_; }
    void leave(const SocketAddress&) override {}  // memberships are the paths' own

    std::unique_ptr<JoinableTransport> udp_, verbs_;
    FileDescriptor both_;
};

}  // namespace mcastcoll
