#include "datagram/receiver.h"

#include <errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>

#include "base/system.h"

namespace mcastcoll::ofi::datagram {
namespace {

// In the data of a socket's event: the descriptor, and whether it is a group's.
constexpr std::uint64_t kGroup = std::uint64_t{1} << 32;
constexpr std::uint64_t kNoSocket = std::uint64_t{1} << 33;

}  // namespace

std::size_t PostedReceive::size() const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
    return bytes;
}

Result<void> Receiver::open(std::size_t most_posted) {
    poll_set_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!poll_set_.valid()) return system_error(errno, "cannot make an epoll descriptor");
    ring_.resize(most_posted);
    return {};
}

Result<void> Receiver::listen(int descriptor, bool group) {
    return add(descriptor, group ? kGroup : 0);
}

Result<void> Receiver::watch(int descriptor) {
    return add(descriptor, kNoSocket);
}

Result<void> Receiver::add(int descriptor, std::uint64_t kind) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(descriptor) | kind;
    if (::epoll_ctl(poll_set_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
        return system_error(errno, "cannot wait for a socket");
    return {};
}

void Receiver::stop(int descriptor) {
    ::epoll_ctl(poll_set_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

bool Receiver::post(const PostedReceive& receive) {
    if (count_ == ring_.size()) return false;
    at(count_) = receive;
    ++count_;
    return true;
}

bool Receiver::take(PostedReceive& first) {
    if (count_ == 0) return false;
    first = at(0);
    head_ = (head_ + 1) % ring_.size();
    --count_;
    return true;
}

bool Receiver::cancel(const void* context, PostedReceive& cancelled) {
    for (std::size_t i = 0; i < count_; ++i) {
        if (at(i).context != context) continue;
        cancelled = at(i);
        for (; i + 1 < count_; ++i) at(i) = at(i + 1);
        --count_;
        return true;
    }
    return false;
}

void Receiver::receive(std::size_t most, Take take) {
    if (count_ == 0 || most == 0) return;
    std::array<epoll_event, kBatch> ready;
    const int sockets = ::epoll_wait(poll_set_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < sockets; ++i) {
        const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
        const std::size_t limit = std::min({most, count_, kBatch});
        if (limit == 0) return;
        if ((data & kNoSocket) != 0) continue;
        const std::size_t before = count_;
        receive_batch(static_cast<int>(data & (kGroup - 1)), (data & kGroup) != 0, limit, take);
        most -= before - count_;
    }
}

void Receiver::put(Bytes bytes, const SocketAddress& source, Take take) {
    const std::size_t length = bytes.size();
    const PostedReceive& first = at(0);
    for (std::size_t i = 0; i < first.count && !bytes.empty(); ++i) {
        const std::size_t fits = std::min(bytes.size(), first.pieces[i].iov_len);
        if (fits > 0) std::memcpy(first.pieces[i].iov_base, bytes.data(), fits);
        bytes = bytes.subspan(fits);
    }
    if (!take(first, {source, length, true})) return;
    head_ = (head_ + 1) % ring_.size();
    --count_;
}

std::size_t Receiver::receive_batch(int descriptor, bool group, std::size_t most, Take take) {
    for (std::size_t i = 0; i < most; ++i) {
        msghdr& in = messages_[i].msg_hdr;
        in = {};
        in.msg_name = sources_[i].data();
        in.msg_namelen = SocketAddress::capacity();
        in.msg_iov = at(i).pieces.data();
        in.msg_iovlen = at(i).count;
    }
    // MSG_TRUNC: lengths are the datagrams', also where the buffer is shorter.
    int got;
    do {
        got = ::recvmmsg(descriptor, messages_.data(), static_cast<unsigned>(most), MSG_DONTWAIT | MSG_TRUNC,
                         nullptr);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return 0;
    const auto received = static_cast<std::size_t>(got);
    std::array<bool, kBatch> taken{};
    for (std::size_t i = 0; i < received; ++i)
        taken[i] = take(at(i), {sources_[i], messages_[i].msg_len, group});
    keep_dropped(received, taken);
    return received;
}

// Buffers whose datagrams were dropped stay posted, before those that were not reached, in their order.
void Receiver::keep_dropped(std::size_t got, const std::array<bool, kBatch>& taken) {
    std::size_t to = got;
    for (std::size_t from = got; from-- > 0;)
        if (!taken[from]) at(--to) = at(from);
    head_ = (head_ + to) % ring_.size();
    count_ -= to;
}

}  // namespace mcastcoll::ofi::datagram
