#include "datagram/membership.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>

#include "base/deadline.h"
#include "datagram/info.h"
#include "datagram/sockets.h"
#include "transport/udp_socket.h"

namespace mcastcoll::datagram {
namespace {

constexpr int kTurnMs = 1;

Result<transport::SocketAddress> read_group(const Endpoint& endpoint, const void* raw) {
    const bool v4 = endpoint.family() == AF_INET;
    // Reads no more bytes than the address family needs.
    auto group = transport::SocketAddress::from(static_cast<const sockaddr*>(raw),
                                                transport::SocketAddress::capacity());
    if (!group) return group;
    const transport::SocketAddress& address = group.value();
    const transport::Interface& interface = endpoint.parent().interface;
    if (address.family() != endpoint.family() || !address.is_multicast() || address.port() == 0)
        return Error{FI_EINVAL,
                     fmt::format("{} is not an IPv{} multicast group with a port", address, v4 ? 4 : 6)};
    if (address.scope() != 0 && address.scope() != interface.index)
        return Error{FI_EINVAL, fmt::format("{} is on another interface than {}", address, interface.name)};
    // Link-local groups need an interface.
    return v4 ? address : address.with_scope(interface.index);
}

}  // namespace

Membership::Membership(Endpoint& endpoint, const transport::SocketAddress& group, bool may_send,
                       void* context)
    : Object(endpoint.shared_from_this(), context), joined_{group, may_send, {}, {}, {}} {}

int Membership::join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** mc,
                     void* context) {
    if (mc == nullptr) return -FI_EINVAL;
    if ((flags & ~kDirections) != 0) return -FI_EBADFLAGS;
    if (endpoint.events() == nullptr) return -FI_ENOEQ;
    if (!endpoint.enabled()) return -FI_EOPBADSTATE;
    auto group = read_group(endpoint, address);
    if (!group) return provider::refuse("fi_join", group.error());
    const std::uint64_t wanted = (flags & kDirections) != 0 ? flags : endpoint.directions();
    if ((wanted & ~endpoint.directions()) != 0) return -FI_EOPNOTSUPP;
    std::unique_lock lock(endpoint.mutex());
    if (endpoint.reliable() != nullptr && endpoint.reliable()->has_joined(group.value())) return -FI_EALREADY;
    auto made = std::make_shared<Membership>(endpoint, group.value(), (wanted & FI_SEND) != 0, context);
    // Any later failure, including lack of memory, undoes the previous steps.
    const auto leave = [](Membership* one) { one->leave(); };
    std::unique_ptr<Membership, decltype(leave)> undo(made.get(), leave);
    // Senders of reliable messages must receive the packets of joining members.
    const bool receives = (wanted & FI_RECV) != 0 || endpoint.reliable() != nullptr;
    auto joined = receives || endpoint.verbs() != nullptr ? made->listen(receives) : Result<void>();
    if (joined && endpoint.reliable() != nullptr) joined = made->probe(lock, wanted);
    if (!joined) made->joined_.may_send = false;
    made->fi_addr = endpoint.add(made->joined_);
    *mc = made.get();
    if (!made->report(joined)) return -FI_EAGAIN;
    undo.release();
    return made->give_to(*mc);
}

bool Membership::report(const Result<void>& joined) {
    if (!joined) {
        provider::log_line(provider::Level::info,
                           "fi_join: multicast group {} is not joined, which the event queue reports: {}",
                           joined_.group, joined.error().message);
        return report_error(FI_JOIN_COMPLETE, joined.error().code, 0);
    }
    Handle* self = &this->fid_mc::fid;
    return parent().events()->push(FI_JOIN_COMPLETE, fi_eq_entry{self, self->context, 0});
}

bool Membership::report_error(std::uint32_t event, int code, std::uint64_t data) {
    fi_eq_err_entry failed{};
    failed.fid = &this->fid_mc::fid;
    failed.context = failed.fid->context;
    failed.data = data;
    failed.err = failed.prov_errno = code;
    return parent().events()->push(event, failed);
}

void Membership::report_lost(const transport::SocketAddress& member, reliable::Loss how) {
    // Reports nothing before the join is complete.
    if (fi_addr == 0) return;
    provider::log_line(provider::Level::info,
                       "multicast group {}: messages of member {} are lost, because the member {}; the event "
                       "queue reports FI_NOTIFY",
                       joined_.group, member,
                       how == reliable::Loss::silent
                           ? "has sent nothing for the time of FI_MCASTCOLL_EXPERIMENT=peer_timeout"
                       : how == reliable::Loss::expelled
                           ? "has expelled this endpoint, which received too slowly"
                           : "no longer stores the packets that are missing here");
    report_error(FI_NOTIFY, how == reliable::Loss::silent ? FI_ECONNRESET : FI_ECONNABORTED,
                 parent().number_of(member));
}

Result<void> Membership::listen(bool receives) {
    if (transport::VerbsTransport* verbs = parent().verbs(); verbs != nullptr) {
        auto joined = verbs->join(without_port(joined_.group));
        if (!joined) return joined.error();
        // Where multicasts can be sent without a membership, this short one is enough for a sender: it has
        // found the route to the group.
        if (receives || !verbs->sends_anywhere()) joined_.share = std::move(joined).value();
        return {};
    }
    joined_.socket = parent().socket_of(joined_.group);
    if (joined_.socket) return {};
    auto opened = open_group_socket(parent().parent().interface, parent().parent().settings, joined_.group);
    if (!opened) return opened.error();
    if (auto listening = parent().receiver().listen(opened.value().get(), true); !listening) return listening;
    joined_.socket = std::make_shared<FileDescriptor>(std::move(opened).value());
    return {};
}

// Takes some hundredths of a second: other members must know this member before its join is reported as
// complete.
Result<void> Membership::probe(std::unique_lock<std::mutex>& lock, std::uint64_t directions) {
    // A kernel without UDP_GRO delivers single packets.
    (void)transport::set_option(joined_.socket->get(), IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO").ok();
    const auto lost = [this](const transport::SocketAddress& member, reliable::Loss how) {
        report_lost(member, how);
    };
    auto joined = parent().reliable()->join(joined_.group, joined_.socket->get(), directions, lost);
    if (!joined) return joined.error();
    joined_.reliable_group = std::move(joined).value();
    while (!joined_.reliable_group->is_ready()) turn(lock);
    return {};
}

// Serves repairs of messages sent so far, for at most the time of the setting "linger".
void Membership::linger(std::unique_lock<std::mutex>& lock) {
    const Deadline deadline(parent().parent().settings.linger_ms);
    while (!joined_.reliable_group->is_settled() && !deadline.over()) {
        // Closing continues after any error: progress needs memory occasionally.
        if (provider::guard([&] { return turn(lock), 0; }) != 0) ::poll(nullptr, 0, kTurnMs);
    }
}

void Membership::turn(std::unique_lock<std::mutex>& lock) {
    parent().receive();
    lock.unlock();
    pollfd sockets{parent().receiver().descriptor(), POLLIN, 0};
    ::poll(&sockets, 1, kTurnMs);
    lock.lock();
}

// The last membership closes the socket, and the kernel then leaves the group.
void Membership::leave() {
    parent().remove(fi_addr);
    joined_.reliable_group.reset();
    if (joined_.socket && joined_.socket.use_count() == 1) parent().receiver().stop(joined_.socket->get());
    joined_.socket.reset();
    joined_.share = {};
}

void Membership::finish() {
    {
        std::unique_lock lock(parent().mutex());
        if (joined_.reliable_group) linger(lock);
        leave();
    }
    parent().events()->forget(this->fid_mc::fid);
}

}  // namespace mcastcoll::datagram
