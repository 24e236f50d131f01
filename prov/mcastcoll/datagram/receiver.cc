#include "datagram/receiver.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/system.h"

namespace mcastcoll::datagram {
namespace {

// Flags in the data of an epoll event, beside the descriptor: the descriptor is a group's socket, or is a
// queue pair's and no socket.
constexpr std::uint64_t kGroup = std::uint64_t{1} << 32;
constexpr std::uint64_t kNoSocket = std::uint64_t{1} << 33;

}  // namespace

Result<void> Receiver::open(std::size_t max_posted) {
    poll_set_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!poll_set_.valid()) return system_error(errno, "cannot create an epoll descriptor");
    posted_.grow(max_posted);
    return {};
}

Result<void> Receiver::listen(int descriptor, bool group) {
    return add(descriptor, group ? kGroup : 0);
}

Result<void> Receiver::listen(transport::MulticastTransport& queue_pair) {
    queue_pair_ = &queue_pair;
    return add(queue_pair.descriptor(), kNoSocket);
}

Result<void> Receiver::add(int descriptor, std::uint64_t kind) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(descriptor) | kind;
    if (::epoll_ctl(poll_set_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
        return system_error(errno, "cannot add a socket or queue pair to the epoll set of an endpoint");
    return {};
}

void Receiver::stop(int descriptor) {
    ::epoll_ctl(poll_set_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

bool Receiver::take(PostedReceive& first) {
    if (posted_.empty()) return false;
    first = posted_.front();
    posted_.pop();
    return true;
}

bool Receiver::cancel(const void* context, PostedReceive& cancelled) {
    for (std::size_t i = 0; i < posted_.size(); ++i) {
        if (posted_.at(i).context != context) continue;
        cancelled = posted_.at(i);
        // The receives before it move up by one.
        for (; i > 0; --i) posted_.at(i) = posted_.at(i - 1);
        posted_.pop();
        return true;
    }
    return false;
}

void Receiver::receive(std::size_t max, Take take) {
    if (posted_.empty() || max == 0) return;
    std::array<epoll_event, kBatch> ready;
    const int sockets = ::epoll_wait(poll_set_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < sockets; ++i) {
        const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
        const std::size_t limit = std::min({max, posted(), kBatch});
        if (limit == 0) return;
        if ((data & kNoSocket) != 0) continue;
        const std::size_t before = posted();
        receive_batch(static_cast<int>(data & (kGroup - 1)), (data & kGroup) != 0, limit, take);
        max -= before - posted();
    }
    if (queue_pair_ != nullptr) receive_from_queue_pair(max, take);
}

void Receiver::receive_from_queue_pair(std::size_t max, Take take) {
    const std::size_t before = posted();
    const auto wanted = [&] { return posted() > 0 && before - posted() < max; };
    for (; wanted() && !waiting_.empty(); waiting_.pop_front())
        put(waiting_.front().bytes, waiting_.front().source, take);
    if (!wanted()) return;
    queue_pair_->receive(Nanoseconds{}, [&](Bytes bytes, const transport::SocketAddress& source) {
        if (wanted())
            put(bytes, source, take);
        else
            waiting_.push_back({{bytes.begin(), bytes.end()}, source});
    });
}

void Receiver::put(Bytes bytes, const transport::SocketAddress& source, Take take) {
    scatter(posted_.front().buffer(), 0, bytes);
    if (take(posted_.front(), {source, bytes.size(), true})) posted_.pop();
}

void Receiver::receive_batch(int descriptor, bool group, std::size_t max, Take take) {
    for (std::size_t i = 0; i < max; ++i) {
        msghdr& in = messages_[i].msg_hdr;
        in = {};
        in.msg_name = sources_[i].data();
        in.msg_namelen = transport::SocketAddress::capacity();
        in.msg_iov = posted_.at(i).pieces.data();
        in.msg_iovlen = posted_.at(i).count;
    }
    // MSG_TRUNC: the reported lengths are those of the datagrams, even if a buffer is shorter.
    int got;
    do {
        got = ::recvmmsg(descriptor, messages_.data(), static_cast<unsigned>(max), MSG_DONTWAIT | MSG_TRUNC,
                         nullptr);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return;
    const auto received = static_cast<std::size_t>(got);
    std::array<bool, kBatch> taken{};
    for (std::size_t i = 0; i < received; ++i)
        taken[i] = take(posted_.at(i), {sources_[i], messages_[i].msg_len, group});
    // Buffers of dropped datagrams stay posted, in order, before the unused buffers.
    std::size_t to = received;
    for (std::size_t from = received; from-- > 0;)
        if (!taken[from]) posted_.at(--to) = posted_.at(from);
    for (; to > 0; --to) posted_.pop();
}

}  // namespace mcastcoll::datagram
