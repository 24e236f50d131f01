#include "transport/udp_sender.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/system.h"

namespace mcastcoll::transport {
namespace {

// The largest run that every kernel with UDP_SEGMENT accepts. 65,000 bytes leave room for the headers within
// the 65,535 bytes of an IP packet.
constexpr std::size_t kMaxRunDatagrams = 64;
constexpr std::size_t kMaxRunBytes = 65000;

Result<void> aim_v4(int descriptor, const UdpMulticastOptions& options, bool loop) {
    if (auto set = multicast_from(descriptor, options.interface, *options.interface.v4); !set) return set;
    return set_options(descriptor, {{IPPROTO_IP, IP_MULTICAST_LOOP, loop, "IP_MULTICAST_LOOP"},
                                    {IPPROTO_IP, IP_MULTICAST_TTL, options.ttl, "IP_MULTICAST_TTL"},
                                    {IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER"}});
}

Result<void> aim_v6(int descriptor, const UdpMulticastOptions& options, bool loop) {
    const int index = static_cast<int>(options.interface.index);
    return set_options(descriptor,
                       {{IPPROTO_IPV6, IPV6_MULTICAST_IF, index, "IPV6_MULTICAST_IF"},
                        {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loop, "IPV6_MULTICAST_LOOP"},
                        {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, options.ttl, "IPV6_MULTICAST_HOPS"},
                        {IPPROTO_IPV6, IPV6_DONTFRAG, 1, "IPV6_DONTFRAG"},
                        {IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, "IPV6_MTU_DISCOVER"}});
}

// sendmsg does not write to its pieces, but iovec is also used for reading and is not const.
iovec piece_of(Bytes bytes) {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

std::size_t size_of(const Datagram& datagram) {
    return datagram.header.size() + datagram.payload.size();
}

// Drops datagrams sent to the sender's own port before they use memory, because no code reads them.
void refuse_incoming(int descriptor) {
    sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog program{1, &drop};
    // If the filter cannot be attached, the socket's small default buffer fills up once, which is harmless.
    (void)::setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

Result<void> UdpSender::open(const UdpMulticastOptions& options, bool loop) {
    auto socket = open_datagram_socket(options.address_family());
    if (!socket) return socket.error();
    const int descriptor = socket.value().get();
    refuse_incoming(descriptor);
    auto granted = size_buffer(descriptor, options.send_buffer_bytes, SO_SNDBUFFORCE, SO_SNDBUF);
    if (!granted) return granted.error();
    auto aimed = options.family == 4 ? aim_v4(descriptor, options, loop) : aim_v6(descriptor, options, loop);
    if (!aimed) return aimed;
    const SocketAddress& own = *options.address();
    if (::bind(descriptor, own.data(), own.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to {} of {}", own, options.interface.name));
    int segment = 0;
    socklen_t size = sizeof segment;
    sends_runs_ = options.offload && ::getsockopt(descriptor, IPPROTO_UDP, UDP_SEGMENT, &segment, &size) == 0;
    interface_index_ = options.interface.index;
    max_payload_ = payload_for(options);
    socket_ = std::move(socket).value();
    for (std::size_t i = 0; i < kBatch; ++i) {
        messages_[i].msg_hdr.msg_name = to_.data();
        msghdr control{};
        control.msg_control = controls_[i].bytes.data();
        control.msg_controllen = controls_[i].bytes.size();
        cmsghdr* note = CMSG_FIRSTHDR(&control);
        note->cmsg_level = IPPROTO_UDP;
        note->cmsg_type = UDP_SEGMENT;
        note->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    }
    return {};
}

// Called after the kernel refused a message. Returns true if a run may be the reason; from then on no runs
// are sent.
bool UdpSender::give_up_runs(int code) {
    if (runs_[0] == 1) return false;
    if (code != EINVAL && code != EIO && code != EOPNOTSUPP && code != EMSGSIZE) return false;
    sends_runs_ = false;
    return true;
}

// Returns the number of datagrams, at least one, to send as one message.
std::size_t UdpSender::run_length(std::span<const Datagram> datagrams) const {
    const std::size_t unit = size_of(datagrams[0]);
    // A datagram that is too long is sent alone, so that its error concerns no other datagram.
    if (!sends_runs_ || unit == 0 || unit > max_payload_) return 1;
    const std::size_t max =
        std::min({datagrams.size(), kMaxRunDatagrams, std::max<std::size_t>(1, kMaxRunBytes / unit)});
    std::size_t length = 1;
    while (length < max && size_of(datagrams[length]) == unit) ++length;
    // An empty datagram would vanish at the end of a run.
    if (length < max && size_of(datagrams[length]) < unit && size_of(datagrams[length]) > 0) ++length;
    return length;
}

void UdpSender::compose(std::size_t message, std::span<const Datagram> run, std::size_t first_piece) {
    for (std::size_t i = 0; i < run.size(); ++i) {
        pieces_[first_piece + 2 * i] = piece_of(run[i].header);
        pieces_[first_piece + 2 * i + 1] = piece_of(run[i].payload);
    }
    msghdr& out = messages_[message].msg_hdr;
    out.msg_iov = &pieces_[first_piece];
    out.msg_iovlen = 2 * run.size();
    runs_[message] = run.size();
    if (run.size() == 1) {
        out.msg_control = nullptr;
        out.msg_controllen = 0;
        return;
    }
    out.msg_control = controls_[message].bytes.data();
    out.msg_controllen = controls_[message].bytes.size();
    const auto unit = static_cast<std::uint16_t>(size_of(run[0]));
    std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&out)), &unit, sizeof unit);
}

// Prepares messages for the first datagrams and returns the number of messages.
std::size_t UdpSender::gather(std::span<const Datagram> datagrams) {
    std::size_t messages = 0;
    std::size_t taken = 0;
    while (messages < kBatch && taken < datagrams.size()) {
        const std::size_t length = run_length(datagrams.subspan(taken));
        if (taken + length > kGather) break;
        compose(messages++, datagrams.subspan(taken, length), 2 * taken);
        taken += length;
    }
    return messages;
}

// Counts the first `messages` prepared messages as sent and returns their number of datagrams.
std::size_t UdpSender::count_sent(std::size_t messages, MulticastCounters& counters) {
    std::size_t datagrams = 0;
    for (std::size_t i = 0; i < messages; ++i) {
        datagrams += runs_[i];
        counters.bytes_sent += messages_[i].msg_len;
        if (runs_[i] > 1) ++counters.runs_sent;
    }
    counters.datagrams_sent += datagrams;
    return datagrams;
}

// Returns how many of the first `count` prepared messages the kernel took; negative, with errno, if none.
int UdpSender::send_batch(std::size_t count) {
    for (;;) {
        int sent;
        if (count == 1) {
            const ssize_t bytes = ::sendmsg(socket_.get(), &messages_[0].msg_hdr, MSG_DONTWAIT);
            messages_[0].msg_len = bytes < 0 ? 0 : static_cast<unsigned>(bytes);
            sent = bytes < 0 ? -1 : 1;
        } else {
            sent = ::sendmmsg(socket_.get(), messages_.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
        }
        if (sent >= 0 || errno != EINTR) return sent;
    }
}

Sent UdpSender::send(std::span<const Datagram> datagrams, const SocketAddress& group,
                     MulticastCounters& counters) {
    to_ = group.with_scope(interface_index_);
    for (mmsghdr& message : messages_) message.msg_hdr.msg_namelen = to_.size();
    std::size_t accepted = 0;
    while (accepted < datagrams.size()) {
        const int sent = send_batch(gather(datagrams.subspan(accepted)));
        if (sent < 0) {
            const int code = errno;
            if (give_up_runs(code)) continue;
            const bool full = is_full(code) || code == ENOMEM;
            ++(full ? counters.send_would_block : counters.send_errors);
            return {accepted, full ? 0 : code};
        }
        // A short count does not give the reason. The next iteration sends the first refused message again
        // and gets the error.
        accepted += count_sent(static_cast<std::size_t>(sent), counters);
    }
    return {accepted, 0};
}

}  // namespace mcastcoll::transport
