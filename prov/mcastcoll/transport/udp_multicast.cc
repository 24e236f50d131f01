#include "transport/udp_multicast.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "transport/system.h"
#include "wire/bytes.h"

// Kernel interfaces that are younger than some C libraries.
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace mcastcoll {
namespace {

constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kIpv4Header = 20;
constexpr std::size_t kIpv6Header = 40;
constexpr std::size_t kMaxIpv4Packet = 65535;
constexpr std::size_t kMaxIpv6Payload = 65535;

// What every kernel that has UDP_SEGMENT takes at once. The bytes leave room for the headers.
constexpr std::size_t kMaxRunDatagrams = 64;
constexpr std::size_t kMaxRunBytes = 65000;
// Any message fits. The buffers are not a power of two apart, lest all their beginnings share a cache set.
constexpr std::size_t kRunBuffer = 65536;
constexpr std::size_t kRunBufferStride = kRunBuffer + 192;

Result<void> set_option(int descriptor, int level, int name, int value, const char* what) {
    if (::setsockopt(descriptor, level, name, &value, sizeof value) != 0)
        return system_error(errno, fmt::format("cannot set {} to {}", what, value));
    return {};
}

Result<FileDescriptor> open_datagram_socket(int family) {
    FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return system_error(errno, "cannot open a UDP socket");
    return socket;
}

// Asks for a buffer beyond the system's limit first, which takes privilege, then within it; returns what was
// granted.
Result<std::size_t> size_buffer(int descriptor, std::size_t bytes, int forced, int limited) {
    const int wanted = static_cast<int>(std::min<std::size_t>(bytes, INT32_MAX / 2));
    if (bytes > 0 && ::setsockopt(descriptor, SOL_SOCKET, forced, &wanted, sizeof wanted) != 0) {
        if (::setsockopt(descriptor, SOL_SOCKET, limited, &wanted, sizeof wanted) != 0)
            return system_error(errno, fmt::format("cannot set a socket buffer to {} bytes", bytes));
    }
    int granted = 0;
    socklen_t size = sizeof granted;
    if (::getsockopt(descriptor, SOL_SOCKET, limited, &granted, &size) != 0)
        return system_error(errno, "cannot read the size of a socket buffer");
    return static_cast<std::size_t>(granted);
}

Result<void> check(const UdpMulticastOptions& options) {
    const Interface& interface = options.interface;
    if (options.family != 4 && options.family != 6)
        return Error{EINVAL, fmt::format("multicast needs IP version 4 or 6, not {}", options.family)};
    const int family = options.family == 4 ? AF_INET : AF_INET6;
    if (options.group.family() != family || !options.group.is_multicast() || options.group.port() == 0)
        return Error{
            EINVAL, fmt::format("{} is no IPv{} multicast group with a port", options.group, options.family)};
    if (options.ttl < 0 || options.ttl > 255)
        return Error{EINVAL, fmt::format("the multicast TTL is 0 to 255, not {}", options.ttl)};
    if (interface.index == 0) return Error{EINVAL, "no interface was given to multicast on"};
    if (!interface.up) return Error{ENETDOWN, fmt::format("interface {} is down", interface.name)};
    // The loopback lacks the flag on Linux, yet multicasts within the host.
    if (!interface.multicast && !interface.loopback)
        return Error{EOPNOTSUPP, fmt::format("interface {} does not multicast", interface.name)};
    if (!(options.family == 4 ? interface.v4 : interface.v6))
        return Error{EADDRNOTAVAIL, fmt::format("interface {} has no IPv{} address to send from",
                                                interface.name, options.family)};
    return {};
}

std::size_t payload_for(const UdpMulticastOptions& options) {
    const std::size_t mtu = options.interface.mtu;
    const std::size_t headers = (options.family == 4 ? kIpv4Header : kIpv6Header) + kUdpHeader;
    const std::size_t largest = options.family == 4 ? kMaxIpv4Packet - headers : kMaxIpv6Payload - kUdpHeader;
    std::size_t payload = mtu > headers ? std::min(mtu - headers, largest) : 0;
    if (options.payload_limit > 0) payload = std::min(payload, options.payload_limit);
    return payload;
}

Result<void> join_v4(int descriptor, const UdpMulticastOptions& options) {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, options.group.address_bytes().data(), sizeof request.imr_multiaddr);
    request.imr_ifindex = static_cast<int>(options.interface.index);
    if (::setsockopt(descriptor, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) != 0)
        return system_error(errno,
                            fmt::format("cannot join {} on {}", options.group, options.interface.name));
    return set_option(descriptor, IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL");
}

Result<void> join_v6(int descriptor, const UdpMulticastOptions& options) {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, options.group.address_bytes().data(),
                sizeof request.ipv6mr_multiaddr);
    request.ipv6mr_interface = options.interface.index;
    if (::setsockopt(descriptor, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request) != 0)
        return system_error(errno,
                            fmt::format("cannot join {} on {}", options.group, options.interface.name));
    return set_option(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL");
}

Result<void> aim_v4(int descriptor, const UdpMulticastOptions& options) {
    ip_mreqn request{};
    request.imr_ifindex = static_cast<int>(options.interface.index);
    std::memcpy(&request.imr_address, options.interface.v4->address_bytes().data(),
                sizeof request.imr_address);
    if (::setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request) != 0)
        return system_error(errno, fmt::format("cannot multicast on {}", options.interface.name));
    if (auto set = set_option(descriptor, IPPROTO_IP, IP_MULTICAST_LOOP, options.loop, "IP_MULTICAST_LOOP");
        !set)
        return set;
    if (auto set = set_option(descriptor, IPPROTO_IP, IP_MULTICAST_TTL, options.ttl, "IP_MULTICAST_TTL");
        !set)
        return set;
    return set_option(descriptor, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER");
}

Result<void> aim_v6(int descriptor, const UdpMulticastOptions& options) {
    const int index = static_cast<int>(options.interface.index);
    if (auto set = set_option(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_IF, index, "IPV6_MULTICAST_IF"); !set)
        return set;
    if (auto set =
            set_option(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, options.loop, "IPV6_MULTICAST_LOOP");
        !set)
        return set;
    if (auto set =
            set_option(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, options.ttl, "IPV6_MULTICAST_HOPS");
        !set)
        return set;
    if (auto set = set_option(descriptor, IPPROTO_IPV6, IPV6_DONTFRAG, 1, "IPV6_DONTFRAG"); !set) return set;
    return set_option(descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, "IPV6_MTU_DISCOVER");
}

// sendmsg does not write through its pieces, but iovec is shared with readers and has no const.
iovec piece_of(Bytes bytes) {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

std::size_t size_of(const Datagram& datagram) {
    return datagram.header.size() + datagram.payload.size();
}

// The size of the datagrams that a received message is a run of; 0 when it is a single one.
std::size_t run_unit(msghdr& message) {
    for (cmsghdr* note = CMSG_FIRSTHDR(&message); note != nullptr; note = CMSG_NXTHDR(&message, note)) {
        if (note->cmsg_level != IPPROTO_UDP || note->cmsg_type != UDP_GRO) continue;
        int unit = 0;
        std::memcpy(&unit, CMSG_DATA(note), sizeof unit);
        return unit > 0 ? static_cast<std::size_t>(unit) : 0;
    }
    return 0;
}

bool is_transient(int code) {
    return code == EAGAIN || code == EWOULDBLOCK || code == ENOBUFS || code == ENOMEM;
}

}  // namespace

Result<std::unique_ptr<UdpMulticast>> UdpMulticast::open(const UdpMulticastOptions& options) {
    if (auto valid = check(options); !valid) return valid.error();
    std::unique_ptr<UdpMulticast> transport(new UdpMulticast);
    transport->group_ = options.group;
    transport->max_payload_ = payload_for(options);
    if (transport->max_payload_ == 0)
        return Error{EMSGSIZE, fmt::format("the MTU of {}, {} bytes, leaves no room for a payload",
                                           options.interface.name, options.interface.mtu)};
    if (auto opened = transport->open_receiver(options); !opened) return opened.error();
    if (auto opened = transport->open_sender(options); !opened) return opened.error();
    transport->prepare_batches();
    return transport;
}

Result<void> UdpMulticast::open_receiver(const UdpMulticastOptions& options) {
    auto socket = open_datagram_socket(options.group.family());
    if (!socket) return socket.error();
    receiver_ = std::move(socket).value();
    if (auto set = set_option(receiver_.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); !set) return set;
    if (options.family == 6)
        if (auto set = set_option(receiver_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1, "IPV6_V6ONLY"); !set)
            return set;
    auto granted = size_buffer(receiver_.get(), options.receive_buffer_bytes, SO_RCVBUFFORCE, SO_RCVBUF);
    if (!granted) return granted.error();
    receive_buffer_bytes_ = granted.value();
    // A kernel without it hands over single datagrams.
    receives_runs_ = options.offload && set_option(receiver_.get(), IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO").ok();
    const SocketAddress bound = group_.with_scope(options.interface.index);
    if (::bind(receiver_.get(), bound.data(), bound.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to {}", group_));
    return options.family == 4 ? join_v4(receiver_.get(), options) : join_v6(receiver_.get(), options);
}

Result<void> UdpMulticast::open_sender(const UdpMulticastOptions& options) {
    auto socket = open_datagram_socket(options.group.family());
    if (!socket) return socket.error();
    sender_ = std::move(socket).value();
    auto granted = size_buffer(sender_.get(), options.send_buffer_bytes, SO_SNDBUFFORCE, SO_SNDBUF);
    if (!granted) return granted.error();
    send_buffer_bytes_ = granted.value();
    auto aimed = options.family == 4 ? aim_v4(sender_.get(), options) : aim_v6(sender_.get(), options);
    if (!aimed) return aimed;
    const SocketAddress& own = options.family == 4 ? *options.interface.v4 : *options.interface.v6;
    if (::bind(sender_.get(), own.data(), own.size()) != 0)
        return system_error(errno, fmt::format("cannot bind to {} of {}", own, options.interface.name));
    const SocketAddress group = group_.with_scope(options.interface.index);
    if (::connect(sender_.get(), group.data(), group.size()) != 0)
        return system_error(errno, fmt::format("no route to {} on {}", group_, options.interface.name));
    auto local = SocketAddress::of_socket(sender_.get());
    if (!local) return local.error();
    local_ = local.value();
    int segment = 0;
    socklen_t size = sizeof segment;
    sends_runs_ =
        options.offload && ::getsockopt(sender_.get(), IPPROTO_UDP, UDP_SEGMENT, &segment, &size) == 0;
    return {};
}

void UdpMulticast::prepare_batches() {
    const std::size_t length = receives_runs_ ? kRunBuffer : max_payload_;
    buffer_stride_ = receives_runs_ ? kRunBufferStride : max_payload_;
    buffers_ = std::make_unique_for_overwrite<std::byte[]>(kBatch * buffer_stride_);
    sources_.resize(kBatch);
    receive_messages_.resize(kBatch);
    receive_pieces_.resize(kBatch);
    receive_controls_.resize(kBatch);
    for (std::size_t i = 0; i < kBatch; ++i) {
        receive_pieces_[i] = {buffers_.get() + i * buffer_stride_, length};
        msghdr& in = receive_messages_[i].msg_hdr;
        in.msg_name = sources_[i].data();
        in.msg_namelen = SocketAddress::capacity();
        in.msg_iov = &receive_pieces_[i];
        in.msg_iovlen = 1;
        if (!receives_runs_) continue;
        in.msg_control = receive_controls_[i].bytes.data();
        in.msg_controllen = receive_controls_[i].bytes.size();
    }
    send_messages_.resize(kBatch);
    send_pieces_.resize(2 * kGather);
    send_controls_.resize(kBatch);
    send_runs_.resize(kBatch);
    for (std::size_t i = 0; i < kBatch; ++i) {
        msghdr control{};
        control.msg_control = send_controls_[i].bytes.data();
        control.msg_controllen = send_controls_[i].bytes.size();
        cmsghdr* note = CMSG_FIRSTHDR(&control);
        note->cmsg_level = IPPROTO_UDP;
        note->cmsg_type = UDP_SEGMENT;
        note->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    }
}

void UdpMulticast::note_send_failure(int code) {
    if (is_transient(code)) {
        ++counters_.send_would_block;
        return;
    }
    ++counters_.send_errors;
    send_error_ = code;
}

// After the kernel refused a run: true when the reason may be that it was one, and there will be no more.
bool UdpMulticast::give_up_runs(int code) {
    if (send_runs_[0] == 1) return false;
    if (code != EINVAL && code != EIO && code != EOPNOTSUPP && code != EMSGSIZE) return false;
    sends_runs_ = false;
    return true;
}

// How many of the datagrams, at least one, can be sent as one message.
std::size_t UdpMulticast::run_length(std::span<const Datagram> datagrams) const {
    const std::size_t unit = size_of(datagrams[0]);
    // What is too long gets its error alone.
    if (!sends_runs_ || unit == 0 || unit > max_payload_) return 1;
    const std::size_t most =
        std::min({datagrams.size(), kMaxRunDatagrams, std::max<std::size_t>(1, kMaxRunBytes / unit)});
    std::size_t length = 1;
    while (length < most && size_of(datagrams[length]) == unit) ++length;
    // An empty datagram would vanish at the end of a run.
    if (length < most && size_of(datagrams[length]) < unit && size_of(datagrams[length]) > 0) ++length;
    return length;
}

void UdpMulticast::compose(std::size_t message, std::span<const Datagram> run, std::size_t first_piece) {
    for (std::size_t i = 0; i < run.size(); ++i) {
        send_pieces_[first_piece + 2 * i] = piece_of(run[i].header);
        send_pieces_[first_piece + 2 * i + 1] = piece_of(run[i].payload);
    }
    msghdr& out = send_messages_[message].msg_hdr;
    out.msg_iov = &send_pieces_[first_piece];
    out.msg_iovlen = 2 * run.size();
    send_runs_[message] = run.size();
    if (run.size() == 1) {
        out.msg_control = nullptr;
        out.msg_controllen = 0;
        return;
    }
    out.msg_control = send_controls_[message].bytes.data();
    out.msg_controllen = send_controls_[message].bytes.size();
    const auto unit = static_cast<std::uint16_t>(size_of(run[0]));
    std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&out)), &unit, sizeof unit);
}

// Prepares messages for the first of the datagrams and returns how many messages.
std::size_t UdpMulticast::gather(std::span<const Datagram> datagrams) {
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

// Counts the first `messages` prepared ones as sent and returns how many datagrams they were.
std::size_t UdpMulticast::count_sent(std::size_t messages) {
    std::size_t datagrams = 0;
    for (std::size_t i = 0; i < messages; ++i) {
        datagrams += send_runs_[i];
        counters_.bytes_sent += send_messages_[i].msg_len;
        if (send_runs_[i] > 1) ++counters_.runs_sent;
    }
    counters_.datagrams_sent += datagrams;
    return datagrams;
}

// How many of the first `count` prepared messages the kernel took; negative with errno when not even one.
int UdpMulticast::send_batch(std::size_t count) {
    for (;;) {
        int sent;
        if (count == 1) {
            const ssize_t bytes = ::sendmsg(sender_.get(), &send_messages_[0].msg_hdr, MSG_DONTWAIT);
            send_messages_[0].msg_len = bytes < 0 ? 0 : static_cast<unsigned>(bytes);
            sent = bytes < 0 ? -1 : 1;
        } else {
            sent =
                ::sendmmsg(sender_.get(), send_messages_.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
        }
        if (sent >= 0 || errno != EINTR) return sent;
    }
}

std::size_t UdpMulticast::send(std::span<const Datagram> datagrams) {
    std::size_t accepted = 0;
    while (accepted < datagrams.size()) {
        const int sent = send_batch(gather(datagrams.subspan(accepted)));
        if (sent < 0) {
            const int code = errno;
            if (give_up_runs(code)) continue;
            note_send_failure(code);
            break;
        }
        // A short count hides its reason: the next turn asks for the first refused one again and learns it.
        accepted += count_sent(static_cast<std::size_t>(sent));
    }
    return accepted;
}

int UdpMulticast::take_send_error() {
    return std::exchange(send_error_, 0);
}

std::size_t UdpMulticast::receive(Nanoseconds, DeliverDatagram deliver) {
    int got;
    do {
        got = ::recvmmsg(receiver_.get(), receive_messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) ++counters_.receive_errors;
        return 0;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) deliver_message(i, deliver);
    return static_cast<std::size_t>(got);
}

void UdpMulticast::deliver_message(std::size_t slot, DeliverDatagram deliver) {
    mmsghdr& message = receive_messages_[slot];
    const std::size_t length = message.msg_len;
    const std::size_t run = receives_runs_ ? run_unit(message.msg_hdr) : 0;
    message.msg_hdr.msg_namelen = SocketAddress::capacity();
    if (receives_runs_) message.msg_hdr.msg_controllen = receive_controls_[slot].bytes.size();
    counters_.bytes_received += length;
    const std::size_t unit = run > 0 ? run : length;
    if (length > unit) ++counters_.runs_received;
    const std::byte* const begin = buffers_.get() + slot * buffer_stride_;
    const bool cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
    std::size_t at = 0;
    // At least once: a datagram can be empty.
    do {
        const std::size_t size = std::min(unit, length - at);
        ++counters_.datagrams_received;
        if (cut || size > max_payload_)
            ++counters_.truncated;
        else
            deliver(Bytes(begin + at, size), sources_[slot]);
        at += size;
    } while (at < length);
}

MulticastCounters UdpMulticast::counters() const {
    MulticastCounters result = counters_;
    std::uint32_t info[SK_MEMINFO_VARS] = {};
    socklen_t size = sizeof info;
    if (::getsockopt(receiver_.get(), SOL_SOCKET, SO_MEMINFO, info, &size) == 0) {
        result.socket_drops = info[SK_MEMINFO_DROPS];
    }
    return result;
}

SocketAddress random_group_address(int family, std::span<const std::byte, kGroupRandomBytes> random) {
    const std::uint16_t port =
        static_cast<std::uint16_t>(20000 + wire::get<std::uint16_t>(random.data()) % 12768);
    if (family == 6) {
        in6_addr address{};
        address.s6_addr[0] = 0xff;
        address.s6_addr[1] = 0x15;
        std::memcpy(address.s6_addr + 2, random.data() + 2, 14);
        return SocketAddress(address, port);
    }
    std::uint32_t low = wire::get<std::uint32_t>(random.data() + 2) & 0x00ffffffu;
    // The upper /24 of the local scope is assigned; x.0.0/24 and x.128.0/24 map to the Ethernet addresses of
    // 224.0.0/24. Both are left by setting bits in the middle, the one out of what is random anyway.
    if ((low & 0x00ffff00u) == 0x00ffff00u) low &= 0x00ff7fffu;
    if ((low & 0x007fff00u) == 0) low |= (1 + wire::get<std::uint32_t>(random.data() + 6) % 0x7ffeu) << 8;
    in_addr address{};
    address.s_addr = htonl(0xef000000u | low);
    return SocketAddress(address, port);
}

}  // namespace mcastcoll
