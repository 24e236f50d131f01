#include "transport/multicast_hub.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <fstream>

#include "base/system.h"

namespace mcastcoll::transport {
namespace {

// The kernel's default limit of memberships per socket for IPv4. Serves for IPv6, too, which has no such
// limit.
constexpr std::size_t kUsualMemberships = 20;

std::size_t kernel_memberships(int family) {
    std::size_t limit = 0;
    if (family == 4) std::ifstream("/proc/sys/net/ipv4/igmp_max_memberships") >> limit;
    return limit > 0 ? limit : kUsualMemberships;
}

}  // namespace

MulticastHub::MulticastHub(const UdpMulticastOptions& options)
    : options_(options),
      max_payload_(payload_for(options)),
      per_socket_(options.memberships_per_socket > 0 ? options.memberships_per_socket
                                                     : kernel_memberships(options.family)) {}

Result<std::unique_ptr<MulticastHub>> MulticastHub::open(const UdpMulticastOptions& options) {
    if (auto valid = check(options); !valid) return valid.error();
    std::unique_ptr<MulticastHub> hub(new MulticastHub(options));
    if (hub->max_payload_ == 0)
        return Error{EMSGSIZE, fmt::format("the MTU of {}, {} bytes, leaves no room for a payload",
                                           options.interface.name, options.interface.mtu)};
    hub->poll_set_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!hub->poll_set_.valid()) return system_error(errno, "cannot watch multicast sockets");
    return hub;
}

Result<Membership> MulticastHub::join(const SocketAddress& group) {
    if (group.family() != options_.address_family() || !group.is_multicast() || group.port() == 0)
        return Error{EINVAL,
                     fmt::format("{} is not an IPv{} multicast group with a port", group, options_.family)};
    auto share = shares_.find(group);
    if (share == shares_.end()) {
        if (options_.max_memberships > 0 && shares_.size() >= options_.max_memberships)
            return Error{ENOBUFS, fmt::format("{} multicast addresses are joined, which is the limit",
                                              shares_.size())};
        auto receiver = join_somewhere(group);
        if (!receiver) return receiver.error();
        share = shares_.emplace(group, Share{0, receiver.value()}).first;
    }
    ++share->second.users;
    return Membership(*this, group);
}

// Returns the socket of this port with the fewest memberships, if the socket has room for one more; null if
// all sockets are full. Adds the number of the port's sockets to `sockets`.
UdpReceiver* MulticastHub::roomiest(std::uint16_t port, std::size_t& sockets) {
    UdpReceiver* best = nullptr;
    for (const auto& receiver : receivers_) {
        if (receiver->port != port) continue;
        ++sockets;
        if (receiver->memberships < per_socket_ &&
            (best == nullptr || receiver->memberships < best->memberships))
            best = receiver.get();
    }
    return best;
}

Result<UdpReceiver*> MulticastHub::join_somewhere(const SocketAddress& group) {
    std::size_t sockets = 0;
    UdpReceiver* shared = roomiest(group.port(), sockets);
    if (shared == nullptr || sockets < kSpread) {
        auto opened = open_receiver(group);
        // If opening fails, for example because no descriptor is left, an existing socket is shared.
        if (opened || shared == nullptr) return opened;
    }
    auto joined = shared->join(group);
    if (joined) return shared;
    if (joined.error().code != ENOBUFS && joined.error().code != ENOMEM) return joined.error();
    // The kernel allows fewer memberships than reported: use the observed limit from now on.
    per_socket_ = std::max<std::size_t>(1, shared->memberships);
    return open_receiver(group);
}

Result<UdpReceiver*> MulticastHub::open_receiver(const SocketAddress& group) {
    auto receiver = std::make_unique<UdpReceiver>();
    if (auto opened = receiver->open(options_, group.port()); !opened) return opened.error();
    if (auto joined = receiver->join(group); !joined) return joined.error();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = receiver.get();
    if (::epoll_ctl(poll_set_.get(), EPOLL_CTL_ADD, receiver->socket.get(), &event) != 0)
        return system_error(errno, "cannot watch a multicast socket");
    receive_buffer_bytes_ = receiver->buffer_bytes;
    if (!batch_) batch_.emplace(max_payload_, receiver->takes_runs);
    receivers_.push_back(std::move(receiver));
    return receivers_.back().get();
}

void MulticastHub::leave(const SocketAddress& group) {
    const auto share = shares_.find(group);
    assert(share != shares_.end());
    if (--share->second.users > 0) return;
    UdpReceiver* receiver = share->second.receiver;
    receiver->leave(group);
    shares_.erase(share);
    if (receiver->memberships > 0) return;
    counters_.socket_drops += receiver->drops();
    // Removes the socket from the epoll set explicitly: if a child of fork() holds a copy, closing the socket
    // here does not remove the entry. A child that closes its inherited copy must not do this, because parent
    // and child share the epoll set.
    if (::getpid() == opener_)
        (void)::epoll_ctl(poll_set_.get(), EPOLL_CTL_DEL, receiver->socket.get(), nullptr);
    std::erase_if(receivers_, [&](const auto& one) { return one.get() == receiver; });
}

bool MulticastHub::has_room() const {
    if (options_.max_memberships > 0 && shares_.size() >= options_.max_memberships) return false;
    // Duplicates a descriptor, since there is no other way to learn whether another descriptor is available.
    return FileDescriptor(::fcntl(poll_set_.get(), F_DUPFD_CLOEXEC, 0)).valid();
}

Result<UdpSender*> MulticastHub::sender(bool loop) {
    UdpSender& one = senders_[loop ? 1 : 0];
    if (!one.is_open())
        if (auto opened = one.open(options_, loop); !opened) return opened.error();
    return &one;
}

Sent MulticastHub::send(std::span<const Datagram> datagrams, const Outlet& to) {
    auto from = sender(to.loop);
    if (from) return from.value()->send(datagrams, to.group, counters_);
    ++counters_.send_errors;
    return {0, from.error().code};
}

std::size_t MulticastHub::receive(Nanoseconds, DeliverDatagram deliver) {
    if (receivers_.empty()) return 0;
    if (receivers_.size() == 1) return batch_->take(receivers_[0]->socket.get(), deliver, counters_);
    // Finding the ready sockets among several costs as much as one receive call on one of them.
    std::array<epoll_event, kReady> ready;
    const int count = ::epoll_wait(poll_set_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    std::size_t taken = 0;
    bool more = count == static_cast<int>(ready.size());
    for (int i = 0; i < count; ++i) {
        const auto* receiver = static_cast<const UdpReceiver*>(ready[static_cast<std::size_t>(i)].data.ptr);
        const std::size_t got = batch_->take(receiver->socket.get(), deliver, counters_);
        more = more || got == kBatch;
        taken += got;
    }
    return more ? std::max(taken, kBatch) : std::min(taken, kBatch - 1);
}

MulticastCounters MulticastHub::counters() const {
    MulticastCounters result = counters_;
    for (const auto& receiver : receivers_) result.socket_drops += receiver->drops();
    return result;
}

}  // namespace mcastcoll::transport
