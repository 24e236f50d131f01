#include "datagram/endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "datagram/absent.h"
#include "datagram/info.h"
#include "datagram/refusal.h"
#include "datagram/sockets.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {
namespace {

// Groups' addresses are told from those of an address vector by this.
constexpr fi_addr_t kFirstGroup = fi_addr_t{1} << 62;
constexpr std::uint64_t kDirections = FI_SEND | FI_RECV;

std::uint64_t directions_of(const fi_info& info) {
    return (info.caps & kDirections) != 0 ? info.caps & kDirections : kDirections;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, InfoOwner info, const SocketAddress& address)
    : fid_ep{},
      domain_(domain),
      info_(std::move(info)),
      address_(address),
      directions_(directions_of(*info_)),
      tells_source_((info_->caps & FI_SOURCE) != 0),
      max_message_(largest_message(domain.interface(), address.family(), info_->ep_attr->type)),
      next_group_(kFirstGroup) {
    domain_.users.enter();
    sent_.default_flags = info_->tx_attr->op_flags;
    received_.default_flags = info_->rx_attr->op_flags;
}

Endpoint::~Endpoint() {
    for (Channel* channel : {&sent_, &received_}) {
        if (channel->queue != nullptr) channel->queue->users.leave();
        if (channel->counter != nullptr) channel->counter->users.leave();
    }
    if (events_ != nullptr) events_->users.leave();
    if (addresses_ != nullptr) addresses_->users.leave();
    domain_.users.leave();
}

int Endpoint::open(Domain& domain, const fi_info* info, fid_ep** endpoint, void* context) {
    static fi_ops object_ops{sizeof(fi_ops), &close, &bind, &control, kRefuse, kRefuse, kRefuse};
    static fi_ops_ep ops{sizeof(fi_ops_ep), &cancel, &getopt, &setopt, kRefuse, kRefuse, kRefuse, kRefuse};
    static fi_ops_cm cm{sizeof(fi_ops_cm), &setname, &getname, kRefuse, kRefuse,
                        kRefuse,           kRefuse,  kRefuse,  kRefuse, &join};
    if (info == nullptr || endpoint == nullptr || info->ep_attr == nullptr || info->tx_attr == nullptr ||
        info->rx_attr == nullptr ||
        (info->ep_attr->type != FI_EP_DGRAM && info->ep_attr->type != FI_EP_RDM) ||
        (info->tx_attr->op_flags & ~kSendFlags) != 0 || (info->rx_attr->op_flags & ~kReceiveFlags) != 0 ||
        info->rx_attr->size > kMostOperations)
        return -FI_EINVAL;
    auto address = own_address(*info, domain.interface());
    if (!address) {
        log_line(Level::warn, "fi_endpoint: {}", address.error().message);
        return -address.error().code;
    }
    InfoOwner copy(fi_dupinfo(info));
    if (!copy) return -FI_ENOMEM;
    auto made = std::unique_ptr<Endpoint, void (*)(Endpoint*)>(
        new Endpoint(domain, std::move(copy), address.value()), [](Endpoint* one) { delete one; });
    made->fid_ep::fid = {FI_CLASS_EP, context, &object_ops};
    made->fid_ep::ops = &ops;
    made->fid_ep::cm = &cm;
    made->fid_ep::msg = &message_operations();
    set_absent(*made);
    *endpoint = made.release();  // close() deletes it
    return 0;
}

int Endpoint::close(Handle* object) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(object);
        {
            const std::lock_guard lock(endpoint.mutex());
            if (!endpoint.memberships_.empty()) return -FI_EBUSY;
            for (Channel* channel : {&endpoint.sent_, &endpoint.received_}) {
                if (channel->queue != nullptr) channel->queue->waiter().remove(endpoint);
                if (channel->counter != nullptr) channel->counter->waiter().remove(endpoint);
            }
        }
        // Closed descriptors drop out of whatever waits for them.
        delete &endpoint;
        return 0;
    });
}

int Endpoint::bind(Handle* object, Handle* other, std::uint64_t flags) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(object);
        if (other == nullptr) return -FI_EINVAL;
        if (endpoint.enabled()) return -FI_EOPBADSTATE;
        return endpoint.bind(*other, flags);
    });
}

int Endpoint::bind(Handle& other, std::uint64_t flags) {
    if (EventQueue* eq = EventQueue::find(other); eq != nullptr) {
        if (events_ != nullptr) return -FI_EINVAL;
        events_ = eq;
        events_->users.enter();
        return 0;
    }
    if (AddressVector* av = AddressVector::find(other); av != nullptr) {
        if (addresses_ != nullptr || &av->domain() != &domain_) return -FI_EINVAL;
        addresses_ = av;
        addresses_->users.enter();
        return 0;
    }
    return bind_completions(other, flags);
}

int Endpoint::bind_completions(Handle& other, std::uint64_t flags) {
    CompletionQueue* cq = CompletionQueue::find(other);
    Counter* counter = Counter::find(other);
    if (cq == nullptr && counter == nullptr) return -FI_EINVAL;
    const std::uint64_t known = cq != nullptr ? FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION : kDirections;
    if ((flags & ~known) != 0) return -FI_EBADFLAGS;
    if (&(cq != nullptr ? cq->domain() : counter->domain()) != &domain_) return -FI_EINVAL;
    const bool sends = (flags & (cq != nullptr ? FI_TRANSMIT : FI_SEND)) != 0;
    const bool receives = (flags & FI_RECV) != 0;
    for (Channel* channel : {sends ? &sent_ : nullptr, receives ? &received_ : nullptr})
        if (channel != nullptr && (cq != nullptr ? channel->queue != nullptr : channel->counter != nullptr))
            return -FI_EINVAL;
    const std::lock_guard lock(mutex());
    for (Channel* channel : {sends ? &sent_ : nullptr, receives ? &received_ : nullptr}) {
        if (channel == nullptr) continue;
        if (cq != nullptr) {
            channel->queue = cq;
            channel->selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
            cq->users.enter();
        } else {
            channel->counter = counter;
            counter->users.enter();
        }
    }
    // Reliable messages need attention after sending, too.
    if (receives || is_reliable()) (cq != nullptr ? cq->waiter() : counter->waiter()).add(*this);
    return 0;
}

int Endpoint::enable() {
    if (enabled()) return 0;
    if (addresses_ == nullptr) return -FI_ENOAV;
    if ((directions_ & FI_SEND) != 0 && sent_.queue == nullptr && sent_.counter == nullptr) return -FI_ENOCQ;
    if ((directions_ & FI_RECV) != 0 && received_.queue == nullptr && received_.counter == nullptr)
        return -FI_ENOCQ;
    if (domain_.over_verbs() && !is_reliable()) {
        auto lane = VerbsLane::open(interface(), settings(), family());
        if (!lane) {
            log_line(Level::warn, "fi_enable: {}", lane.error().message);
            return -lane.error().code;
        }
        verbs_ = std::move(lane).value();
        max_message_ = std::min(max_message_, verbs_->max_message());
    }
    auto opened = open_socket();
    if (!opened) {
        log_line(Level::warn, "fi_enable: {}", opened.error().message);
        return -opened.error().code;
    }
    auto bound = SocketAddress::of_socket(opened.value().get());
    if (!bound) return -bound.error().code;
    auto ready = receiver_.open(std::max<std::size_t>(info_->rx_attr->size, 1));
    if (ready) ready = receiver_.listen(opened.value().get(), false);
    if (ready && verbs_) ready = receiver_.watch(verbs_->descriptor());
    if (!ready) return -ready.error().code;
    if (is_reliable()) {
        auto reliable = Reliable::open(*this, receiver_, settings(), opened.value().get(),
                                       largest_message(interface(), family(), FI_EP_DGRAM));
        if (!reliable) return -reliable.error().code;
        reliable_ = std::move(reliable).value();
    }
    address_ = bound.value();
    socket_ = std::move(opened).value();
    return 0;
}

// Peers know the sender of a multicast over verbs by the port that its queue pair makes, if that can be had.
Result<FileDescriptor> Endpoint::open_socket() {
    if (verbs_ && address_.port() == 0) {
        auto opened = open_own_socket(interface(), settings(), address_.with_port(verbs_->port()));
        if (opened) return opened;
    }
    return open_own_socket(interface(), settings(), address_);
}

int Endpoint::operation_flags(std::uint64_t* flags, bool set) {
    if (flags == nullptr) return -FI_EINVAL;
    const std::uint64_t which = *flags & (FI_TRANSMIT | FI_RECV);
    if (which != FI_TRANSMIT && which != FI_RECV) return -FI_EINVAL;
    const std::lock_guard lock(mutex());
    std::uint64_t& current = (which == FI_RECV ? received_ : sent_).default_flags;
    const std::uint64_t allowed = which == FI_RECV ? kReceiveFlags : kSendFlags;
    if (set && (*flags & ~which & ~allowed) != 0) return -FI_EINVAL;
    if (set)
        current = *flags & ~which;
    else
        *flags = current;
    return 0;
}

int Endpoint::control(Handle* object, int command, void* argument) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(object);
        auto* flags = static_cast<std::uint64_t*>(argument);
        switch (command) {
            case FI_ENABLE:
                return endpoint.enable();
            case FI_GETOPSFLAG:
                return endpoint.operation_flags(flags, false);
            case FI_SETOPSFLAG:
                return endpoint.operation_flags(flags, true);
            default:
                return -FI_ENOSYS;
        }
    });
}

ssize_t Endpoint::cancel(Handle* object, void* context) noexcept {
    return guard([&]() -> ssize_t {
        Endpoint& endpoint = of(object);
        const std::lock_guard lock(endpoint.mutex());
        if (endpoint.received_.full()) return -FI_EAGAIN;
        PostedReceive cancelled;
        if (!endpoint.receiver_.cancel(context, cancelled)) return -FI_ENOENT;
        endpoint.received_.complete(
            cancelled.flags, {.op_context = context, .flags = FI_MSG | FI_RECV, .error = FI_ECANCELED});
        return 0;
    });
}

int Endpoint::getopt(Handle*, int, int, void*, std::size_t*) noexcept {
    return -FI_ENOPROTOOPT;
}

int Endpoint::setopt(Handle*, int, int, const void*, std::size_t) noexcept {
    return -FI_ENOPROTOOPT;
}

int Endpoint::setname(Handle* object, void* address, std::size_t length) noexcept {
    return guard([&] {
        Endpoint& endpoint = of(object);
        if (endpoint.enabled()) return -FI_EOPBADSTATE;
        if (address == nullptr) return -FI_EINVAL;
        auto wanted = SocketAddress::from_bytes(Bytes(static_cast<const std::byte*>(address), length));
        if (!wanted || wanted.value().family() != endpoint.family() || wanted.value().is_multicast())
            return -FI_EINVAL;
        endpoint.address_ = wanted.value();
        return 0;
    });
}

int Endpoint::getname(Handle* object, void* buffer, std::size_t* length) noexcept {
    return guard([&] {
        const Endpoint& endpoint = of(object);
        if (length == nullptr || (*length > 0 && buffer == nullptr)) return -FI_EINVAL;
        SocketAddress name = endpoint.address_;
        const auto& own = endpoint.family() == AF_INET ? endpoint.interface().v4 : endpoint.interface().v6;
        // Peers can do nothing with a wildcard.
        if (name.is_wildcard() && own) name = own->with_port(name.port());
        const std::size_t room = *length;
        *length = name.size();
        if (room > 0) std::memcpy(buffer, name.data(), std::min<std::size_t>(room, name.size()));
        return room < name.size() ? -FI_ETOOSMALL : 0;
    });
}

int Endpoint::join(fid_ep* endpoint, const void* address, std::uint64_t flags, fid_mc** mc,
                   void* context) noexcept {
    return guard([&] { return Membership::join(of(endpoint), address, flags, mc, context); });
}

std::shared_ptr<FileDescriptor> Endpoint::socket_of(const SocketAddress& group) const {
    for (const auto& [number, membership] : memberships_)
        if (membership->socket() && membership->group() == group) return membership->socket();
    return nullptr;
}

void Endpoint::add(Membership& membership) {
    membership.fi_addr = next_group_++;
    memberships_.emplace(membership.fi_addr, &membership);
}

void Endpoint::remove(const Membership& membership) {
    memberships_.erase(membership.fi_addr);
}

}  // namespace mcastcoll::ofi::datagram
