#include "datagram/endpoint.h"

#include <algorithm>

#include "datagram/info.h"
#include "datagram/sockets.h"

namespace mcastcoll::datagram {

Endpoint::Endpoint(Domain& domain, provider::InfoOwner info, const transport::SocketAddress& address,
                   void* context)
    : Object(domain.shared_from_this(), context),
      info_(std::move(info)),
      address_(address),
      directions_(directions_of(*info_)),
      max_message_(largest_message(domain.interface, address.family(), info_->ep_attr->type)) {
    sent_.default_flags = info_->tx_attr->op_flags;
    received_.default_flags = info_->rx_attr->op_flags;
    waiters_.reserve(4);
}

// Does not remove the sockets from epoll sets: closed descriptors disappear from all sets.
Endpoint::~Endpoint() {
    const std::lock_guard lock(mutex());
    for (Waiter* waiter : waiters_) waiter->remove(*this);
}

int Endpoint::bind(Handle* other, std::uint64_t flags) {
    if (other == nullptr) return -FI_EINVAL;
    if (enabled()) return -FI_EOPBADSTATE;
    if (EventQueue* eq = EventQueue::find(*other); eq != nullptr) {
        if (events_) return -FI_EINVAL;
        events_ = eq->shared_from_this();
        return 0;
    }
    if (AddressVector* av = AddressVector::find(*other); av != nullptr) {
        if (addresses_ || &av->parent() != &parent()) return -FI_EINVAL;
        addresses_ = av->shared_from_this();
        if ((info_->caps & FI_SOURCE) != 0) received_.senders = av;
        return 0;
    }
    if (CompletionQueue* cq = CompletionQueue::find(*other); cq != nullptr) {
        if ((flags & ~(kDirections | FI_SELECTIVE_COMPLETION)) != 0) return -FI_EBADFLAGS;
        return complete_to(*cq, &Channel::queue, flags);
    }
    Counter* counter = Counter::find(*other);
    if (counter == nullptr) return -FI_EINVAL;
    if ((flags & ~kDirections) != 0) return -FI_EBADFLAGS;
    return complete_to(*counter, &Channel::counter, flags);
}

template <typename Target>
int Endpoint::complete_to(Target& target, std::shared_ptr<Target> Channel::*place, std::uint64_t flags) {
    const bool sends = (flags & FI_SEND) != 0, receives = (flags & FI_RECV) != 0;
    if (&target.parent() != &parent() || (!sends && !receives)) return -FI_EINVAL;
    if ((sends && sent_.*place) || (receives && received_.*place)) return -FI_EINVAL;
    const std::lock_guard lock(mutex());
    const auto set = [&](Channel& channel) {
        channel.*place = target.shared_from_this();
        if ((flags & FI_SELECTIVE_COMPLETION) != 0) channel.selective = true;
    };
    if (sends) set(sent_);
    if (receives) set(received_);
    // Reliable messages also need progress after sending.
    if ((receives || is_reliable(*info_)) && target.add(*this)) waiters_.push_back(&target);
    return 0;
}

int Endpoint::control(int command, void* argument) {
    switch (command) {
        case FI_ENABLE:
            return enable();
        case FI_GETOPSFLAG:
        case FI_SETOPSFLAG:
            return operation_flags(static_cast<std::uint64_t*>(argument), command == FI_SETOPSFLAG);
        default:
            return -FI_ENOSYS;
    }
}

int Endpoint::enable() {
    if (enabled()) return 0;
    if (!addresses_) return -FI_ENOAV;
    if ((directions_ & FI_SEND) != 0 && !sent_.queue && !sent_.counter) return -FI_ENOCQ;
    if ((directions_ & FI_RECV) != 0 && !received_.queue && !received_.counter) return -FI_ENOCQ;
    if (parent().over_verbs && !is_reliable(*info_)) {
        auto groups = open_queue_pair(parent().interface, parent().settings, family());
        if (!groups) return provider::refuse("fi_enable", groups.error());
        verbs_ = std::move(groups).value();
        max_message_ = std::min(max_message_, verbs_->max_payload());
    }
    auto opened = open_socket();
    if (!opened) return provider::refuse("fi_enable", opened.error());
    auto bound = transport::SocketAddress::of_socket(opened.value().get());
    if (!bound) return -bound.error().code;
    auto ready = received_.receiver.open(std::max<std::size_t>(info_->rx_attr->size, 1));
    if (ready) ready = received_.receiver.listen(opened.value().get(), false);
    if (ready && verbs_) ready = received_.receiver.listen(*verbs_);
    if (!ready) return -ready.error().code;
    if (is_reliable(*info_)) {
        auto reliable = Reliable::open(parent(), received_, opened.value().get(), family());
        if (!reliable) return provider::refuse("fi_enable", reliable.error());
        reliable_ = std::move(reliable).value();
    }
    address_ = bound.value();
    socket_ = std::move(opened).value();
    return 0;
}

// If possible, binds the port derived from the queue pair's number, so that peers can identify the sender of
// a multicast over verbs.
Result<FileDescriptor> Endpoint::open_socket() const {
    const auto open = [this](const transport::SocketAddress& address) {
        return open_own_socket(parent().interface, parent().settings, address);
    };
    if (verbs_ && address_.port() == 0)
        if (auto opened = open(address_.with_port(verbs_->local_address().port()))) return opened;
    // Members identify each other by one address, so the endpoint uses one address even if several would
    // reach the members.
    const auto& own = family() == AF_INET ? parent().interface.v4 : parent().interface.v6;
    if (is_reliable(*info_) && address_.is_wildcard() && own) return open(own->with_port(address_.port()));
    return open(address_);
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

ssize_t Endpoint::cancel(void* context) {
    const std::lock_guard lock(mutex());
    return received_.cancel(context);
}

int Endpoint::set_name(void* address, std::size_t length) {
    if (enabled()) return -FI_EOPBADSTATE;
    auto wanted =
        transport::SocketAddress::from(static_cast<const sockaddr*>(address), static_cast<socklen_t>(length));
    if (!wanted || wanted.value().family() != family() || wanted.value().is_multicast()) return -FI_EINVAL;
    address_ = wanted.value();
    return 0;
}

int Endpoint::get_name(void* buffer, std::size_t* length) {
    if (length == nullptr || (*length > 0 && buffer == nullptr)) return -FI_EINVAL;
    const auto& own = family() == AF_INET ? parent().interface.v4 : parent().interface.v6;
    // A wildcard is useless to peers.
    const transport::SocketAddress name =
        address_.is_wildcard() && own ? own->with_port(address_.port()) : address_;
    return write_address(name, buffer, *length) ? 0 : -FI_ETOOSMALL;
}

std::shared_ptr<FileDescriptor> Endpoint::socket_of(const transport::SocketAddress& group) const {
    for (const auto& [number, joined] : joined_)
        if (joined->socket && joined->group == group) return joined->socket;
    return nullptr;
}

}  // namespace mcastcoll::datagram
