#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/file_descriptor.h"
#include "base/system.h"
#include "transport/joinable_transport.h"
#include "transport/membership.h"
#include "transport/multicast_transport.h"

namespace mcastcoll::transport {
namespace {

class MulticastPaths final : public JoinableTransport {
  public:
    MulticastPaths(std::unique_ptr<JoinableTransport> udp, std::unique_ptr<JoinableTransport> verbs,
                   FileDescriptor both)
        : udp_(std::move(udp)), verbs_(std::move(verbs)), both_(std::move(both)) {}

    Result<Membership> join(const SocketAddress& group) override { return path(group).join(group); }
    bool has_joined(const SocketAddress& group) const override { return path(group).has_joined(group); }
    bool has_room() const override { return udp_->has_room(); }
    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override {
        return path(to.group).send(datagrams, to);
    }
    // Takes at most one batch from each transport.
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override {
        const std::size_t taken = verbs_->receive(now, deliver);
        return std::max(taken, udp_->receive(now, deliver));
    }
    int descriptor() const override { return both_.get(); }
    bool prepare_wait() override {
        const bool verbs = verbs_->prepare_wait();
        return udp_->prepare_wait() && verbs;
    }
    std::size_t max_payload() const override { return std::max(verbs_->max_payload(), udp_->max_payload()); }
    MulticastCounters counters() const override;

  private:
    JoinableTransport& path(const SocketAddress& group) const { return group.port() == 0 ? *verbs_ : *udp_; }
    void leave(const SocketAddress&) override {}  // memberships belong to udp_ and verbs_

    std::unique_ptr<JoinableTransport> udp_, verbs_;
    FileDescriptor both_;
};

MulticastCounters MulticastPaths::counters() const {
    MulticastCounters sum = udp_->counters();
    const MulticastCounters more = verbs_->counters();
    using Counters = MulticastCounters;
    for (const auto counter :
         {&Counters::datagrams_sent, &Counters::bytes_sent, &Counters::datagrams_received,
          &Counters::bytes_received, &Counters::truncated, &Counters::send_would_block,
          &Counters::send_errors, &Counters::receive_errors, &Counters::own_copies, &Counters::revivals})
        sum.*counter += more.*counter;
    return sum;
}

}  // namespace

Result<std::unique_ptr<JoinableTransport>> open_both(std::unique_ptr<JoinableTransport> udp,
                                                     std::unique_ptr<JoinableTransport> verbs) {
    FileDescriptor both(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!both.valid()) return system_error(errno, "cannot watch multicasts");
    for (const JoinableTransport* one : {udp.get(), verbs.get()})
        if (::epoll_ctl(both.get(), EPOLL_CTL_ADD, one->descriptor(), &event) != 0)
            return system_error(errno, "cannot watch multicasts");
    return std::unique_ptr<JoinableTransport>(
        new MulticastPaths(std::move(udp), std::move(verbs), std::move(both)));
}

}  // namespace mcastcoll::transport
