#include "datagram/membership.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "datagram/endpoint.h"
#include "datagram/object.h"
#include "datagram/sockets.h"
#include "provider/guard.h"
#include "transport/udp_socket.h"

namespace mcastcoll::ofi::datagram {
namespace {

constexpr int kTurnMs = 1;

// IPv6 addresses with this scope, or one below, mean nothing without an interface.
SocketAddress with_interface(const SocketAddress& group, const Interface& interface) {
    return group.family() == AF_INET6 ? group.with_scope(interface.index) : group;
}

Result<SocketAddress> read_group(const Endpoint& endpoint, const void* raw) {
    if (raw == nullptr) return Error{FI_EINVAL, "no group"};
    const std::size_t size = endpoint.family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    auto group = SocketAddress::from_bytes(Bytes(static_cast<const std::byte*>(raw), size));
    if (!group) return group.error();
    const SocketAddress& address = group.value();
    const unsigned index = endpoint.domain().interface().index;
    if (address.family() != endpoint.family() || !address.is_multicast() || address.port() == 0)
        return Error{FI_EINVAL, fmt::format("{} is no IPv{} group with a port", address,
                                            endpoint.family() == AF_INET ? 4 : 6)};
    if (address.scope() != 0 && address.scope() != index)
        return Error{FI_EINVAL, fmt::format("{} is on another interface than {}", address,
                                            endpoint.domain().interface().name)};
    return with_interface(address, endpoint.domain().interface());
}

}  // namespace

int Membership::join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** mc,
                     void* context) {
    static fi_ops ops{sizeof(fi_ops), &close, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse};
    if (mc == nullptr) return -FI_EINVAL;
    if ((flags & ~std::uint64_t{FI_SEND | FI_RECV}) != 0) return -FI_EBADFLAGS;
    if (endpoint.events() == nullptr) return -FI_ENOEQ;
    if (!endpoint.enabled()) return -FI_EOPBADSTATE;
    auto group = read_group(endpoint, address);
    if (!group) {
        log_line(Level::warn, "fi_join: {}", group.error().message);
        return -FI_EINVAL;
    }
    const std::uint64_t wanted = (flags & (FI_SEND | FI_RECV)) != 0 ? flags : endpoint.directions();
    if ((wanted & ~endpoint.directions()) != 0) return -FI_EOPNOTSUPP;
    std::unique_lock lock(endpoint.mutex());
    if (endpoint.reliable() != nullptr && endpoint.reliable()->has_joined(group.value())) return -FI_EALREADY;
    // Whatever fails from here on, memory included, undoes what was done before.
    const auto undo = [](Membership* one) {
        one->leave();
        delete one;
    };
    std::unique_ptr<Membership, decltype(undo)> made(
        new Membership(endpoint, group.value(), (wanted & FI_SEND) != 0), undo);
    made->fid_mc::fid = {FI_CLASS_MC, context, &ops};
    // Senders of reliable messages must hear who joins.
    const bool hears = (wanted & FI_RECV) != 0 || endpoint.reliable() != nullptr;
    auto joined = hears || endpoint.verbs() != nullptr ? made->listen(hears) : Result<void>();
    if (joined && endpoint.reliable() != nullptr) joined = made->probe(lock, (wanted & FI_RECV) != 0);
    if (!joined) made->may_send_ = false;
    endpoint.add(*made);
    *mc = made.get();
    if (!made->tell(joined)) return -FI_EAGAIN;
    made.release();  // close() deletes it
    return 0;
}

bool Membership::tell(const Result<void>& joined) {
    Handle* self = &this->fid_mc::fid;
    if (joined) return endpoint_.events()->push(FI_JOIN_COMPLETE, {self, self->context, 0});
    log_line(Level::info, "fi_join: {}", joined.error().message);
    fi_eq_err_entry failed{};
    failed.fid = self;
    failed.context = self->context;
    failed.err = failed.prov_errno = joined.error().code;
    return endpoint_.events()->push_error(FI_JOIN_COMPLETE, failed);
}

Result<void> Membership::listen(bool receives) {
    if (endpoint_.verbs() != nullptr) {
        auto joined = endpoint_.verbs()->join(group_, receives);
        if (!joined) return joined.error();
        share_ = std::move(joined).value();
        return {};
    }
    socket_ = endpoint_.socket_of(group_);
    if (socket_) return {};
    auto opened = open_group_socket(endpoint_.domain().interface(), endpoint_.domain().settings(), group_);
    if (!opened) return opened.error();
    if (auto listening = endpoint_.receiver().listen(opened.value().get(), true); !listening)
        return listening;
    socket_ = std::make_shared<FileDescriptor>(std::move(opened).value());
    return {};
}

// Takes some hundredths of a second: others are to know of this member before it is told that it has joined.
Result<void> Membership::probe(std::unique_lock<std::mutex>& lock, bool receives) {
    Reliable& reliable = *endpoint_.reliable();
    // A kernel without it hands over single packets.
    (void)set_option(socket_->get(), IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO").ok();
    if (auto joined = reliable.join(group_, socket_->get(), may_send_, receives); !joined) return joined;
    while (!reliable.is_ready(group_)) turn(lock);
    return {};
}

// What was sent is still to be repaired, for the time of FI_MCASTCOLL_LINGER at most.
void Membership::linger(std::unique_lock<std::mutex>& lock) {
    const Deadline deadline(endpoint_.domain().settings().linger_ms);
    while (!endpoint_.reliable()->is_settled(group_) && !deadline.over()) {
        // Closing goes on whatever fails: what moves needs memory now and then.
        if (guard([&] { return turn(lock), 0; }) != 0) ::poll(nullptr, 0, kTurnMs);
    }
}

void Membership::turn(std::unique_lock<std::mutex>& lock) {
    endpoint_.receive();
    lock.unlock();
    pollfd sockets{endpoint_.receiver().descriptor(), POLLIN, 0};
    ::poll(&sockets, 1, kTurnMs);
    lock.lock();
}

// The last one closes the socket, which has the kernel leave the group.
void Membership::leave() {
    endpoint_.remove(*this);
    if (endpoint_.reliable() != nullptr) endpoint_.reliable()->leave(group_);
    if (socket_ && socket_.use_count() == 1) endpoint_.receiver().stop(socket_->get());
    socket_.reset();
    share_ = {};
}

int Membership::close(Handle* object) noexcept {
    return guard([&] {
        Membership& membership = object_of<Membership, fid_mc>(object);
        {
            std::unique_lock lock(membership.endpoint_.mutex());
            if (membership.endpoint_.reliable() != nullptr) membership.linger(lock);
            membership.leave();
        }
        membership.endpoint_.events()->forget(*object);
        delete &membership;
        return 0;
    });
}

}  // namespace mcastcoll::ofi::datagram
