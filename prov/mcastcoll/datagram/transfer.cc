// Sending and receiving on datagram endpoints.
#include <algorithm>

#include "datagram/endpoint.h"
#include "datagram/info.h"
#include "datagram/sockets.h"
#include "transport/udp_socket.h"

namespace mcastcoll::datagram {
namespace {

// Converts an errno value to the result of a call.
int answer(int error) {
    return transport::is_full(error) ? -FI_EAGAIN : -error;
}

}  // namespace

int Endpoint::send_to_peer(fi_addr_t to, Pieces pieces) const {
    if (reliable_) return -FI_EOPNOTSUPP;
    const transport::SocketAddress* peer = addresses_->find(to);
    return peer != nullptr ? answer(transmit(socket_.get(), pieces, *peer)) : -FI_EINVAL;
}

int Endpoint::send_to_group(fi_addr_t to, Pieces pieces, std::size_t size) {
    const auto found = joined_.find(to);
    if (found == joined_.end()) return -FI_EINVAL;
    const Joined& joined = *found->second;
    if (!joined.may_send) return -FI_EACCES;
    if (reliable_) return joined.reliable_group->send(pieces, size);
    if (!verbs_) return answer(transmit(socket_.get(), pieces, joined.group));
    const transport::Datagram datagram{gather(pieces, gathered_), {}};
    const auto [accepted, error] = verbs_->send(std::span(&datagram, 1), {without_port(joined.group), true});
    return accepted == 1 ? 0 : error == 0 ? -FI_EAGAIN : -error;
}

ssize_t Endpoint::send(const Message& message) {
    if (!are_valid(message.pieces)) return -FI_EINVAL;
    if ((message.flags & ~kSendFlags) != 0) return -FI_EBADFLAGS;
    const std::size_t size = size_of(message.pieces);
    if (size > max_message_) return -FI_EMSGSIZE;
    const std::lock_guard lock(mutex());
    if (!enabled()) return -FI_EOPBADSTATE;
    if ((directions_ & FI_SEND) == 0) return -FI_EOPNOTSUPP;
    const std::uint64_t multicast = message.flags & FI_MULTICAST;
    // Must precede the check for room: received messages may take entries if one queue serves both
    // directions.
    if (const auto found = joined_.find(message.to); reliable_ && multicast != 0 && found != joined_.end())
        if (found->second->reliable_group) found->second->reliable_group->look(size);
    if (!message.silent && sent_.wants_completion(message.flags) && sent_.full()) return -FI_EAGAIN;
    const int rc = multicast != 0 ? send_to_group(message.to, message.pieces, size)
                                  : send_to_peer(message.to, message.pieces);
    if (rc != 0) return rc;
    if (message.silent) {
        if (sent_.counter) sent_.counter->count(false);
        return 0;
    }
    sent_.complete(message.flags,
                   {.op_context = message.context, .flags = FI_SEND | FI_MSG | multicast, .length = size});
    return 0;
}

ssize_t Endpoint::post(Pieces pieces, void* context, std::uint64_t flags) {
    if (!are_valid(pieces)) return -FI_EINVAL;
    if ((flags & ~kReceiveFlags) != 0) return -FI_EBADFLAGS;
    PostedReceive posted{.context = context, .flags = flags, .count = pieces.size()};
    std::copy(pieces.begin(), pieces.end(), posted.pieces.begin());
    const std::lock_guard lock(mutex());
    if (!enabled()) return -FI_EOPBADSTATE;
    if ((directions_ & FI_RECV) == 0) return -FI_EOPNOTSUPP;
    if (!received_.receiver.post(posted)) return -FI_EAGAIN;
    // A buffer is available now, so sleeping threads must watch the sockets. For reliable messages the
    // threads also wake up, to take messages that waited for a buffer.
    if (reliable_)
        wake();
    else
        watch();
    return 0;
}

void Endpoint::wake() {
    for (Waiter* waiter : waiters_) waiter->wait_object().wake();
}

void Endpoint::watch() {
    if (reliable_) reliable_->arm();
    const bool wanted = reliable_ || received_.receiver.posted() > 0;
    // prepare_wait() returns false for datagrams that have arrived already, for which the device sends no
    // event.
    if (wanted && !received_.receiver.prepare_wait()) wake();
    if (wanted == watched_) return;
    watched_ = wanted;
    for (Waiter* waiter : waiters_) {
        if (!wanted) {
            waiter->wait_object().remove(received_.receiver.descriptor());
        } else if (!waiter->wait_object().add(received_.receiver.descriptor())) {
            // No thread may sleep until the next attempt.
            watched_ = false;
            waiter->wait_object().wake();
        }
    }
}

void Endpoint::receive() {
    if (reliable_) return reliable_->progress();
    if (received_.receiver.posted() == 0) return;
    const auto taking = [this](const PostedReceive& posted, const Datagram& datagram) {
        if (datagram.multicast && is_own(datagram.source)) return false;
        received_.deliver(posted, datagram);
        return true;
    };
    received_.receiver.receive(received_.queue ? received_.queue->room() : received_.receiver.posted(),
                               taking);
}

// A member must not receive its own multicasts.
bool Endpoint::is_own(const transport::SocketAddress& source) const {
    if (source.port() != address_.port()) return false;
    if (!address_.is_wildcard()) return source.same_host(address_);
    const auto& own = parent().interface.addresses;
    return std::any_of(own.begin(), own.end(),
                       [&](const transport::SocketAddress& address) { return address.same_host(source); });
}

}  // namespace mcastcoll::datagram
