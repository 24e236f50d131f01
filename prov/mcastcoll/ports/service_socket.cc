#include "ports/service_socket.h"

#include "provider/log.h"
#include "transport/socket_address.h"

namespace mcastcoll::ports {

Result<void> ServiceSocket::open(const wire::ByteString& own_address, std::uint32_t scope) {
    auto rendezvous = transport::Rendezvous::open(own_address, scope);
    if (!rendezvous) return rendezvous.error();
    rendezvous_.emplace(std::move(rendezvous).value());
    return {};
}

void ServiceSocket::send_hello(const wire::ByteString& member, std::uint32_t attempt, Bytes message) {
    // Most members have the first candidate port, so every other attempt goes to that port.
    rendezvous_->send(member, attempt % 2 == 0 ? 0 : attempt / 2 + 1, message);
}

void ServiceSocket::reply(const group::Source& source, Bytes datagram) {
    rendezvous_->reply(transport::RendezvousSource::from_bytes(source), datagram);
}

bool ServiceSocket::may_be(const wire::ByteString& member, const group::Source& source) const {
    return transport::Rendezvous::may_be(member, transport::RendezvousSource::from_bytes(source));
}

// Two names that are not network addresses both belong to this host.
bool ServiceSocket::same_host(const wire::ByteString& one, const wire::ByteString& other) const {
    const auto first = transport::SocketAddress::from_bytes(one),
               second = transport::SocketAddress::from_bytes(other);
    return first && second ? first.value().same_host(second.value()) : first.ok() == second.ok();
}

void ServiceSocket::foreign_version(const group::Source& source, std::uint8_t version) {
    provider::log_line(
        provider::Level::warn,
        "the process at {} cannot join a group with this process: its join protocol has version {}, this "
        "process's {}; install the same release of mcastcoll on all hosts",
        transport::RendezvousSource::from_bytes(source).to_string(), version, wire::kJoinVersion);
}

}  // namespace mcastcoll::ports
