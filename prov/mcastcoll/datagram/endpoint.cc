#include "datagram/endpoint.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "datagram/info.h"
#include "datagram/sockets.h"

namespace mcastcoll::ofi::datagram {
namespace {

// Groups' addresses are told from those of an address vector by this.
constexpr fi_addr_t kFirstGroup = fi_addr_t{1} << 62;
constexpr std::uint64_t kDirections = FI_SEND | FI_RECV;

std::uint64_t directions_of(const fi_info& info) {
    return (info.caps & kDirections) != 0 ? info.caps & kDirections : kDirections;
}

bool is_reliable(const fi_info& info) {
    return info.ep_attr->type == FI_EP_RDM;
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
    auto made = std::make_unique<Endpoint>(domain, std::move(copy), address.value());
    made->fid_ep::fid = {FI_CLASS_EP, context, nullptr};
    set_calls(*made);
    *endpoint = made.release();  // fi_close() deletes it
    return 0;
}

int Endpoint::detach() {
    const std::lock_guard lock(mutex());
    if (!memberships_.empty()) return -FI_EBUSY;
    for (Channel* channel : {&sent_, &received_}) {
        if (channel->queue != nullptr) channel->queue->waiter().remove(*this);
        if (channel->counter != nullptr) channel->counter->waiter().remove(*this);
    }
    return 0;
}

int Endpoint::bind(Handle& other, std::uint64_t flags) {
    if (enabled()) return -FI_EOPBADSTATE;
    if (EventQueue* eq = EventQueue::find(other); eq != nullptr) {
        if (events_ != nullptr) return -FI_EINVAL;
        events_ = eq;
        events_->users.enter();
        return 0;
    }
    if (AddressVector* av = AddressVector::find(other); av != nullptr) {
        if (addresses_ != nullptr || &av->parent() != &domain_) return -FI_EINVAL;
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
    if (&(cq != nullptr ? cq->parent() : counter->parent()) != &domain_) return -FI_EINVAL;
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
    if (receives || is_reliable(*info_)) (cq != nullptr ? cq->waiter() : counter->waiter()).add(*this);
    return 0;
}

int Endpoint::enable() {
    if (enabled()) return 0;
    if (addresses_ == nullptr) return -FI_ENOAV;
    if ((directions_ & FI_SEND) != 0 && sent_.queue == nullptr && sent_.counter == nullptr) return -FI_ENOCQ;
    if ((directions_ & FI_RECV) != 0 && received_.queue == nullptr && received_.counter == nullptr)
        return -FI_ENOCQ;
    if (domain_.over_verbs() && !is_reliable(*info_)) {
        auto groups = VerbsGroups::open(domain_.interface(), domain_.settings(), family());
        if (!groups) {
            log_line(Level::warn, "fi_enable: {}", groups.error().message);
            return -groups.error().code;
        }
        verbs_ = std::move(groups).value();
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
    if (is_reliable(*info_)) {
        auto reliable = Reliable::open(*this, receiver_, domain_.settings(), opened.value().get(),
                                       largest_message(domain_.interface(), family(), FI_EP_DGRAM));
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
        auto opened =
            open_own_socket(domain_.interface(), domain_.settings(), address_.with_port(verbs_->port()));
        if (opened) return opened;
    }
    return open_own_socket(domain_.interface(), domain_.settings(), address_);
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

int Endpoint::cancel(void* context) {
    const std::lock_guard lock(mutex());
    if (received_.full()) return -FI_EAGAIN;
    PostedReceive cancelled;
    if (!receiver_.cancel(context, cancelled)) return -FI_ENOENT;
    received_.complete(cancelled.flags,
                       {.op_context = context, .flags = FI_MSG | FI_RECV, .error = FI_ECANCELED});
    return 0;
}

int Endpoint::set_name(const SocketAddress& wanted) {
    if (enabled()) return -FI_EOPBADSTATE;
    if (wanted.family() != family() || wanted.is_multicast()) return -FI_EINVAL;
    address_ = wanted;
    return 0;
}

SocketAddress Endpoint::name() const {
    const Interface& interface = domain_.interface();
    const auto& own = family() == AF_INET ? interface.v4 : interface.v6;
    // Peers can do nothing with a wildcard.
    return address_.is_wildcard() && own ? own->with_port(address_.port()) : address_;
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
