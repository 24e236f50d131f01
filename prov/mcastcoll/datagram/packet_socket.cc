#include "datagram/packet_socket.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <array>
#include <cstring>

#include "transport/udp_socket.h"

namespace mcastcoll::ofi::datagram {
namespace {

// The kernel's share of a receive buffer for a datagram, roughly: the data rounded up, and its own
// bookkeeping.
std::size_t datagram_cost(std::size_t bytes) {
    return (bytes + 2047) / 2048 * 2048 + 768;
}

}  // namespace

int transmit(int socket, Bytes packets, std::size_t unit, const SocketAddress& to) {
    iovec piece{const_cast<std::byte*>(packets.data()), packets.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr out{};
    out.msg_name = const_cast<sockaddr*>(to.data());
    out.msg_namelen = to.size();
    out.msg_iov = &piece;
    out.msg_iovlen = 1;
    if (packets.size() > unit) {
        out.msg_control = control.data();
        out.msg_controllen = control.size();
        cmsghdr* note = CMSG_FIRSTHDR(&out);
        note->cmsg_level = IPPROTO_UDP;
        note->cmsg_type = UDP_SEGMENT;
        note->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
        const auto size = static_cast<std::uint16_t>(unit);
        std::memcpy(CMSG_DATA(note), &size, sizeof size);
    }
    ssize_t sent;
    do {
        sent = ::sendmsg(socket, &out, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

bool is_full(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

// The kernel drops copies of our own packets, and data for who only sends. The filter sees the UDP header
// first.
void leave_out(int socket, feed::MemberId self, bool receives) {
    constexpr unsigned kUdpHeader = 8, kKind = kUdpHeader + 4, kFrom = kUdpHeader + 16, kAll = UINT32_MAX;
    const auto id = static_cast<std::uint64_t>(self);
    // A kind that there is not.
    const std::uint32_t unwanted = receives ? 0 : static_cast<std::uint32_t>(feed::Kind::data);
    std::array<sock_filter, 8> steps{{
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kKind),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unwanted, 5, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFrom),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(id >> 32), 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFrom + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(id), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, kAll),
        BPF_STMT(BPF_RET | BPF_K, 0),
    }};
    const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
    // Without it they are dropped here.
    (void)::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

std::size_t room_for(int socket, std::size_t packet, std::size_t unknown) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    if (::getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &size) != 0 || bytes <= 0) return unknown;
    return static_cast<std::size_t>(bytes) / datagram_cost(packet);
}

}  // namespace mcastcoll::ofi::datagram
