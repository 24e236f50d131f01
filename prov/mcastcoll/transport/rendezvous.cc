#include "transport/rendezvous.h"

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/system.h"
#include "transport/udp_socket.h"
#include "wire/bytes.h"

namespace mcastcoll::transport {
namespace {

constexpr std::uint64_t kPortSeed = 0x6d63617374706f72;
constexpr std::uint16_t kFirstPort = 10000;
constexpr std::uint16_t kPorts = 10000;
// Room for the hellos of a thousand members while rank 0 does other work; each takes about a KiB of kernel
// memory. Linux's default has room for about 200. Hellos that do not fit are repeated.
constexpr std::size_t kHellosBytes = std::size_t{2} << 20;

}  // namespace

std::array<std::uint16_t, kRendezvousCandidates> rendezvous_ports(std::uint16_t port) {
    std::array<std::uint16_t, kRendezvousCandidates> ports{port};
    std::size_t found = 1;
    for (std::uint64_t round = 0; found < ports.size(); ++round) {
        std::array<std::byte, 2> bytes;
        wire::put(bytes.data(), port);
        const std::uint64_t hash = stable_hash(bytes, kPortSeed + round);
        const std::uint16_t candidate = static_cast<std::uint16_t>(kFirstPort + hash % kPorts);
        const auto end = ports.begin() + static_cast<std::ptrdiff_t>(found);
        if (std::find(ports.begin(), end, candidate) == end) ports[found++] = candidate;
    }
    return ports;
}

bool operator==(const RendezvousSource& left, const RendezvousSource& right) {
    if (std::ranges::equal(left.bytes(), right.bytes())) return true;
    auto first = SocketAddress::from_bytes(left.bytes());
    auto second = SocketAddress::from_bytes(right.bytes());
    return first && second && first.value() == second.value();
}

Result<Rendezvous> Rendezvous::open(Bytes own_address, std::uint32_t scope) {
    const auto ip = SocketAddress::from_bytes(own_address);
    const int family = ip ? ip.value().family() : AF_UNIX;
    Rendezvous result;
    result.scope_ = scope;
    result.socket_ = FileDescriptor(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!result.socket_.valid()) return system_error(errno, "cannot open the rendezvous socket");
    (void)size_buffer(result.socket_.get(), kHellosBytes, SO_RCVBUFFORCE, SO_RCVBUF);
    std::string refused;
    int code = 0;
    for (unsigned attempt = 0; attempt < kRendezvousCandidates; ++attempt) {
        auto at = RendezvousSource::candidate(own_address, attempt, scope);
        if (!at) return at.error();
        // Without SO_REUSEADDR, so that a second socket at this port is refused instead of taking datagrams.
        if (::bind(result.socket_.get(), &at.value().address_.any, at.value().size_) == 0) {
            result.local_ = at.value();
            return result;
        }
        code = errno;
        refused += (refused.empty() ? "" : ", ") + at.value().to_string();
        // EACCES: only privileged processes may use this port. The other candidates are not privileged ports.
        if (code != EADDRINUSE && code != EACCES) break;
    }
    return system_error(
        code, fmt::format("cannot bind the socket by which peers find this process to {}", refused));
}

int Rendezvous::send(Bytes inner_address, unsigned attempt, Bytes bytes) {
    auto to = RendezvousSource::candidate(inner_address, attempt, scope_);
    if (!to) return to.error().code;
    return reply(to.value(), bytes);
}

int Rendezvous::reply(const RendezvousSource& source, Bytes bytes) {
    if (bytes.size() > kRendezvousMaxBytes) return EMSGSIZE;
    if (source.address_.any.sa_family != local_.address_.any.sa_family) return EAFNOSUPPORT;
    ssize_t sent;
    do {
        sent = ::sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                        &source.address_.any, source.size_);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return 0;
    const int code = errno;
    return code == EWOULDBLOCK || code == ENOBUFS || code == ENOMEM ? EAGAIN : code;
}

bool Rendezvous::may_be(Bytes inner_address, const RendezvousSource& source) {
    for (unsigned attempt = 0; attempt < kRendezvousCandidates; ++attempt) {
        const auto at = RendezvousSource::candidate(inner_address, attempt);
        if (at && at.value() == source) return true;
    }
    return false;
}

std::size_t Rendezvous::receive(Deliver deliver, unsigned max) {
    std::array<std::byte, kRendezvousMaxBytes> buffer;
    for (unsigned turn = 0; turn < max; ++turn) {
        RendezvousSource source;
        source.size_ = sizeof source.address_;
        const ssize_t got = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC,
                                       &source.address_.any, &source.size_);
        if (got < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) return turn;
            // The call was interrupted, or returned an error caused by an earlier datagram of this socket,
            // which is thereby cleared.
            continue;
        }
        if (static_cast<std::size_t>(got) > buffer.size()) continue;
        deliver(Bytes(buffer.data(), static_cast<std::size_t>(got)), source);
    }
    return max;
}

}  // namespace mcastcoll::transport
