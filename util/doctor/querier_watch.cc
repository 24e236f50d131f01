// Listens for queriers. Switches with IGMP or MLD snooping learn the members of a group from the hosts'
// answers to queries; without a querier the switches drop the members after some minutes.
#include "querier_watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

namespace mcastcoll::doctor {
namespace {

constexpr std::uint8_t kIgmp = 2, kIgmpQuery = 0x11, kIcmp6 = 58, kMldQuery = 130;
constexpr std::size_t kIpv6Header = 40;
constexpr unsigned kMaxWaiting = 10'000;  // packets, more than a socket's buffer holds

// Filters the socket: only IGMP, or ICMPv6 behind the options that MLD always has.
void take_only(int descriptor, int family) {
    sock_filter v4[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIgmp, 0, 1), BPF_STMT(BPF_RET | BPF_K, 65535),
                        BPF_STMT(BPF_RET | BPF_K, 0)};
    sock_filter v6[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
                        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kIpv6Header),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIcmp6, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, 65535),
                        BPF_STMT(BPF_RET | BPF_K, 0)};
    const sock_fprog program = family == 4 ? sock_fprog{std::size(v4), v4} : sock_fprog{std::size(v6), v6};
    (void)::setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

// The sender of a query, from a packet that begins with its IP header; empty: no query.
std::string querier_of(const unsigned char* packet, std::size_t size, int family) {
    char text[INET6_ADDRSTRLEN] = "";
    if (family == 4) {
        const std::size_t header = size >= 20 ? std::size_t{packet[0] & 15U} * 4 : size;
        if (header < 20 || size < header + 8 || packet[9] != kIgmp || packet[header] != kIgmpQuery) return {};
        return ::inet_ntop(AF_INET, packet + 12, text, sizeof text);
    }
    if (size < kIpv6Header + 2) return {};
    const std::size_t options = (std::size_t{packet[kIpv6Header + 1]} + 1) * 8;
    if (size <= kIpv6Header + options || packet[kIpv6Header + options] != kMldQuery) return {};
    return ::inet_ntop(AF_INET6, packet + 8, text, sizeof text);
}

}  // namespace

QuerierWatch::QuerierWatch(const transport::Interface& interface, int family)
    : family_(family), begun_ns_(monotonic_now().value) {
    const auto protocol = static_cast<std::uint16_t>(family == 4 ? ETH_P_IP : ETH_P_IPV6);
    FileDescriptor socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) {
        why_not_ =
            errno == EPERM ? "receiving IGMP and MLD queries needs root (CAP_NET_RAW)" : ::strerror(errno);
        return;
    }
    take_only(socket.get(), family);
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_protocol = htons(protocol);
    at.sll_ifindex = static_cast<int>(interface.index);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        why_not_ = fmt::format("cannot listen on {}: {}", interface.name, ::strerror(errno));
    else
        socket_ = std::move(socket);
}

Querier QuerierWatch::wait(double seconds) {
    Querier querier;
    const Nanoseconds end{begun_ns_ + static_cast<std::int64_t>(seconds * 1e9)};
    querier.received =
        socket_.valid() ? Look<std::string>(std::string()) : Look<std::string>::failed(why_not_);
    // The turns of other hosts may have taken longer: packets received meanwhile wait in the socket.
    for (unsigned waiting = 0; waiting < kMaxWaiting;) {
        const std::int64_t left_ns = (end - monotonic_now()).value;
        waiting += left_ns > 0 ? 0 : 1;
        pollfd ready{socket_.valid() ? socket_.get() : -1, POLLIN, 0};
        if (::poll(&ready, 1, left_ns > 0 ? static_cast<int>(left_ns / 1'000'000) + 1 : 0) <= 0) {
            if (left_ns > 0) continue;
            break;
        }
        unsigned char packet[2048];
        sockaddr_ll from{};
        socklen_t size = sizeof from;
        const ssize_t got =
            ::recvfrom(socket_.get(), packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &size);
        if (got <= 0 || from.sll_pkttype == PACKET_OUTGOING) continue;
        const std::string who = querier_of(packet, static_cast<std::size_t>(got), family_);
        if (!who.empty() && (*querier.received).empty()) querier.received = who;
    }
    querier.waited_s = static_cast<double>((monotonic_now().value - begun_ns_)) / 1e9;
    return querier;
}

}  // namespace mcastcoll::doctor
