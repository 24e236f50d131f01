#include "transport/udp_receiver.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/system.h"

namespace mcastcoll {
namespace {

// Any message fits. The buffers are not a power of two apart, lest all their beginnings share a cache set.
constexpr std::size_t kRunBuffer = 65536;
constexpr std::size_t kRunBufferStride = kRunBuffer + 192;

}  // namespace

Result<UdpReceiver> UdpReceiver::open(const UdpMulticastOptions& options, std::uint16_t port) {
    const bool v4 = options.family == 4;
    UdpReceiver receiver;
    receiver.port_ = port;
    receiver.interface_index_ = options.interface.index;
    auto socket = open_datagram_socket(v4 ? AF_INET : AF_INET6);
    if (!socket) return socket.error();
    receiver.socket_ = std::move(socket).value();
    const int descriptor = receiver.socket_.get();
    if (auto set = set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !set)
        return set.error();
    auto own = hear_own_groups(descriptor, v4 ? AF_INET : AF_INET6);
    if (own && !v4) own = set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY");
    if (!own) return own.error();
    auto granted = size_buffer(descriptor, options.receive_buffer_bytes, SO_RCVBUFFORCE, SO_RCVBUF);
    if (!granted) return granted.error();
    receiver.buffer_bytes_ = granted.value();
    // A kernel without it hands over single datagrams.
    receiver.takes_runs_ = options.offload && set_option(descriptor, IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO").ok();
    const SocketAddress any =
        v4 ? SocketAddress(in_addr{INADDR_ANY}, port) : SocketAddress(in6addr_any, port);
    if (::bind(descriptor, any.data(), any.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to port {}", port));
    return receiver;
}

Result<void> UdpReceiver::join(const SocketAddress& group) {
    if (const int error = change_membership(socket_.get(), MCAST_JOIN_GROUP, group, interface_index_))
        return system_error(error, fmt::format("cannot join {}", group));
    ++memberships_;
    return {};
}

void UdpReceiver::leave(const SocketAddress& group) {
    (void)change_membership(socket_.get(), MCAST_LEAVE_GROUP, group, interface_index_);
    --memberships_;
}

std::uint64_t UdpReceiver::drops() const {
    std::uint32_t info[SK_MEMINFO_VARS] = {};
    socklen_t size = sizeof info;
    return ::getsockopt(socket_.get(), SOL_SOCKET, SO_MEMINFO, info, &size) == 0 ? info[SK_MEMINFO_DROPS] : 0;
}

ReceiveBatch::ReceiveBatch(std::size_t max_payload, bool runs)
    : max_payload_(max_payload), runs_(runs), at_once_(runs ? kRunsAtOnce : kBatch) {
    const std::size_t length = runs ? kRunBuffer : max_payload;
    const std::size_t stride = runs ? kRunBufferStride : max_payload;
    buffers_ = std::make_unique_for_overwrite<std::byte[]>(at_once_ * stride);
    sources_.resize(at_once_);
    messages_.resize(at_once_);
    pieces_.resize(at_once_);
    controls_.resize(at_once_);
    for (std::size_t i = 0; i < at_once_; ++i) {
        pieces_[i] = {buffers_.get() + i * stride, length};
        msghdr& in = messages_[i].msg_hdr;
        in.msg_name = sources_[i].data();
        in.msg_namelen = SocketAddress::capacity();
        in.msg_iov = &pieces_[i];
        in.msg_iovlen = 1;
        if (!runs) continue;
        in.msg_control = controls_[i].bytes.data();
        in.msg_controllen = controls_[i].bytes.size();
    }
}

std::size_t ReceiveBatch::take(int descriptor, DeliverDatagram deliver, MulticastCounters& counters) {
    std::size_t taken = 0;
    for (std::size_t got = at_once_; got == at_once_ && taken < kBatch; taken += got) {
        got = receive(descriptor, counters);
        for (std::size_t i = 0; i < got; ++i) deliver_message(i, deliver, counters);
    }
    return taken;
}

std::size_t ReceiveBatch::receive(int descriptor, MulticastCounters& counters) {
    int got;
    do {
        got =
            ::recvmmsg(descriptor, messages_.data(), static_cast<unsigned>(at_once_), MSG_DONTWAIT, nullptr);
    } while (got < 0 && errno == EINTR);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EAGAIN && errno != EWOULDBLOCK) ++counters.receive_errors;
    return 0;
}

void ReceiveBatch::deliver_message(std::size_t slot, DeliverDatagram deliver, MulticastCounters& counters) {
    mmsghdr& message = messages_[slot];
    const std::size_t length = message.msg_len;
    const std::size_t unit = runs_ ? run_unit(message.msg_hdr, length) : length;
    message.msg_hdr.msg_namelen = SocketAddress::capacity();
    if (runs_) message.msg_hdr.msg_controllen = controls_[slot].bytes.size();
    counters.bytes_received += length;
    if (length > unit) ++counters.runs_received;
    const auto* const begin = static_cast<const std::byte*>(pieces_[slot].iov_base);
    const bool cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
    std::size_t at = 0;
    // At least once: a datagram can be empty.
    do {
        const std::size_t size = std::min(unit, length - at);
        ++counters.datagrams_received;
        if (cut || size > max_payload_)
            ++counters.truncated;
        else
            deliver(Bytes(begin + at, size), sources_[slot]);
        at += size;
    } while (at < length);
}

}  // namespace mcastcoll
