// Sending and receiving of datagram endpoints.
#include <algorithm>

#include "datagram/endpoint.h"
#include "datagram/info.h"
#include "datagram/sockets.h"
#include "transport/udp_socket.h"

namespace mcastcoll::ofi::datagram {
namespace {

// What the system says of a datagram: 0, or -FI_E*.
int send_one(int descriptor, Pieces pieces, const SocketAddress& to) {
    msghdr out{};
    out.msg_iov = const_cast<iovec*>(pieces.data());
    out.msg_iovlen = pieces.size();
    const int error = transmit(descriptor, out, to);
    return is_full(error) ? -FI_EAGAIN : -error;
}

}  // namespace

void Endpoint::Channel::complete(std::uint64_t flags, const Completion& completion) {
    if (counter) counter->count(completion.error != 0);
    if (completion.error != 0 ? queue != nullptr : tells(flags)) queue->push(completion);
}

void Endpoint::Channel::cancel(const PostedReceive& posted) {
    complete(posted.flags, {.op_context = posted.context, .flags = FI_MSG | FI_RECV, .error = FI_ECANCELED});
}

const SocketAddress* Endpoint::destination(const Message& message, int& error) const {
    error = -FI_EINVAL;
    if ((message.flags & FI_MULTICAST) == 0) {
        if (!reliable_) return addresses_->find(message.to);
        error = -FI_EOPNOTSUPP;
        return nullptr;
    }
    const auto found = memberships_.find(message.to);
    if (found == memberships_.end()) return nullptr;
    if (!found->second->may_send()) error = -FI_EACCES;
    return found->second->may_send() ? &found->second->group() : nullptr;
}

ssize_t Endpoint::send(const Message& message) {
    if (!are_valid(message.pieces)) return -FI_EINVAL;
    if ((message.flags & ~kSendFlags) != 0) return -FI_EBADFLAGS;
    const std::size_t size = size_of(message.pieces);
    if (size > max_message_) return -FI_EMSGSIZE;
    const std::lock_guard lock(mutex());
    if (!enabled()) return -FI_EOPBADSTATE;
    if ((directions_ & FI_SEND) == 0) return -FI_EOPNOTSUPP;
    int error = 0;
    const SocketAddress* to = destination(message, error);
    if (to == nullptr) return error;
    if (!message.silent && sent_.tells(message.flags) && sent_.full()) return -FI_EAGAIN;
    const int rc = reliable_ ? reliable_->send(*to, message.pieces, size)
                   : verbs_ && (message.flags & FI_MULTICAST) != 0
                       ? verbs_->send(*to, message.pieces)
                       : send_one(socket_.get(), message.pieces, *to);
    if (rc != 0) return rc;
    if (message.silent) {
        if (sent_.counter) sent_.counter->count(false);
        return 0;
    }
    const std::uint64_t kind = FI_SEND | FI_MSG | (message.flags & FI_MULTICAST);
    sent_.complete(message.flags, {.op_context = message.context, .flags = kind, .length = size});
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
    if (!receiver_.post(posted)) return -FI_EAGAIN;
    // Who sleeps already looks at the sockets from now on; reliable messages that wait are taken at once.
    if (reliable_)
        wake();
    else
        watch();
    return 0;
}

std::array<Waiter*, 4> Endpoint::waiters() const {
    std::array<Waiter*, 4> all{received_.queue.get(), received_.counter.get()};
    if (is_reliable(*info_)) {
        all[2] = sent_.queue.get();
        all[3] = sent_.counter.get();
    }
    return all;
}

void Endpoint::wake() {
    for (Waiter* waiter : waiters())
        if (waiter != nullptr) waiter->wait_object().wake();
}

void Endpoint::watch() {
    if (reliable_) reliable_->arm();
    const bool wanted = reliable_ || receiver_.posted() > 0;
    // It rings only when asked to, and not for what is there.
    if (wanted && verbs_ && !verbs_->prepare_wait()) wake();
    if (wanted == watched_) return;
    watched_ = wanted;
    for (Waiter* waiter : waiters()) {
        if (waiter == nullptr) continue;
        if (!wanted) {
            waiter->wait_object().remove(receiver_.descriptor());
        } else if (!waiter->wait_object().add(receiver_.descriptor())) {
            // Nobody may sleep until the next try.
            watched_ = false;
            waiter->wait_object().wake();
        }
    }
}

void Endpoint::receive() {
    if (reliable_) return reliable_->progress();
    if (receiver_.posted() == 0) return;
    const auto taking = [this](const PostedReceive& posted, const Datagram& datagram) {
        if (datagram.multicast && is_own(datagram.source)) return false;
        complete_receive(posted, datagram);
        return true;
    };
    const auto room = [this] { return received_.queue ? received_.queue->room() : receiver_.posted(); };
    receiver_.receive(room(), taking);
    if (verbs_) verbs_->receive(receiver_, room(), taking);
}

// Groups are heard by everybody but who sends.
bool Endpoint::is_own(const SocketAddress& source) const {
    if (source.port() != address_.port()) return false;
    if (!address_.is_wildcard()) return source.same_host(address_);
    const auto& own = parent().interface.addresses;
    return std::any_of(own.begin(), own.end(),
                       [&](const SocketAddress& address) { return address.same_host(source); });
}

void Endpoint::complete_receive(const PostedReceive& posted, const Datagram& datagram) {
    const std::size_t room = size_of(posted.buffer());
    Completion done{.op_context = posted.context,
                    .flags = FI_RECV | FI_MSG | (datagram.multicast ? FI_MULTICAST : 0),
                    .length = std::min(datagram.length, room)};
    if (posted.count > 0) done.buffer = posted.pieces[0].iov_base;
    if (tells_source_) done.source = addresses_->find(datagram.source);
    if (datagram.length > room) {
        done.error = FI_ETRUNC;
        done.left_out = datagram.length - room;
    }
    received_.complete(posted.flags, done);
}

bool Endpoint::begin_receive(PostedReceive& posted) {
    return !received_.full() && receiver_.take(posted);
}

bool Endpoint::end_receive(const PostedReceive& posted, const Datagram& message) {
    if (received_.full()) return false;
    complete_receive(posted, message);
    return true;
}

void Endpoint::give_back(const PostedReceive& posted) {
    // If others were posted in its place meanwhile, it is told of as cancelled.
    if (!receiver_.post(posted) && !received_.full()) received_.cancel(posted);
}

void Endpoint::tell_lost(const SocketAddress& group, const SocketAddress& member, feed::Loss how) {
    for (const auto& [number, membership] : memberships_) {
        if (!(membership->group() == group)) continue;
        fi_eq_err_entry lost{};
        lost.fid = &membership->fid_mc::fid;
        lost.context = lost.fid->context;
        lost.data = addresses_->find(member);
        lost.err = how == feed::Loss::silent ? FI_ECONNRESET : FI_ECONNABORTED;
        lost.prov_errno = lost.err;
        log_line(Level::info, "{}: {} {}", group, member,
                 how == feed::Loss::silent     ? "has not been heard for the peer timeout"
                 : how == feed::Loss::expelled ? "has expelled this member, which was too slow"
                                               : "no longer has what is missing here");
        events_->push(FI_NOTIFY, lost);
    }
}

}  // namespace mcastcoll::ofi::datagram
