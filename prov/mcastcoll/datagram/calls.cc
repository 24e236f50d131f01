// What libfabric calls on a datagram endpoint: tables, arguments, and what must not throw.
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>

#include "datagram/endpoint.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {
namespace {

Endpoint& endpoint_of(fid_ep* endpoint) {
    return static_cast<Endpoint&>(*endpoint);
}

Endpoint& endpoint_of(Handle* object) {
    return object_of<Endpoint, fid_ep>(object);
}

int close(Handle* object) noexcept {
    return guard([&] {
        Endpoint& endpoint = endpoint_of(object);
        if (const int refused = endpoint.detach(); refused != 0) return refused;
        // Closed descriptors drop out of whatever waits for them.
        delete &endpoint;
        return 0;
    });
}

int bind(Handle* object, Handle* other, std::uint64_t flags) noexcept {
    return guard([&] { return other == nullptr ? -FI_EINVAL : endpoint_of(object).bind(*other, flags); });
}

int control(Handle* object, int command, void* argument) noexcept {
    return guard([&] {
        Endpoint& endpoint = endpoint_of(object);
        auto* flags = static_cast<std::uint64_t*>(argument);
        switch (command) {
            case FI_ENABLE:
                return endpoint.enable();
            case FI_GETOPSFLAG:
                return endpoint.operation_flags(flags, false);
            case FI_SETOPSFLAG:
                return endpoint.operation_flags(flags, true);
            default:
                return -FI_ENOSYS;
        }
    });
}

ssize_t cancel(Handle* object, void* context) noexcept {
    return guard([&] { return endpoint_of(object).cancel(context); });
}

int getopt(Handle*, int, int, void*, std::size_t*) noexcept {
    return -FI_ENOPROTOOPT;
}

int setopt(Handle*, int, int, const void*, std::size_t) noexcept {
    return -FI_ENOPROTOOPT;
}

int setname(Handle* object, void* address, std::size_t length) noexcept {
    return guard([&] {
        Endpoint& endpoint = endpoint_of(object);
        if (endpoint.enabled()) return -FI_EOPBADSTATE;
        if (address == nullptr) return -FI_EINVAL;
        auto wanted = SocketAddress::from_bytes(Bytes(static_cast<const std::byte*>(address), length));
        return wanted ? endpoint.set_name(wanted.value()) : -FI_EINVAL;
    });
}

int getname(Handle* object, void* buffer, std::size_t* length) noexcept {
    return guard([&] {
        if (length == nullptr || (*length > 0 && buffer == nullptr)) return -FI_EINVAL;
        const SocketAddress name = endpoint_of(object).name();
        const std::size_t room = *length;
        *length = name.size();
        if (room > 0) std::memcpy(buffer, name.data(), std::min<std::size_t>(room, name.size()));
        return room < name.size() ? -FI_ETOOSMALL : 0;
    });
}

int join(fid_ep* endpoint, const void* address, std::uint64_t flags, fid_mc** mc, void* context) noexcept {
    return guard([&] { return Membership::join(endpoint_of(endpoint), address, flags, mc, context); });
}

ssize_t recv(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t, void* context) noexcept {
    const iovec piece{buffer, length};
    return guard([&] { return endpoint_of(ep).post(&piece, 1, context, endpoint_of(ep).receive_flags()); });
}

ssize_t recvv(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t, void* context) noexcept {
    return guard(
        [&] { return endpoint_of(ep).post(pieces, count, context, endpoint_of(ep).receive_flags()); });
}

ssize_t recvmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        if (message == nullptr) return -FI_EINVAL;
        return endpoint_of(ep).post(message->msg_iov, message->iov_count, message->context, flags);
    });
}

ssize_t send(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
             void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return guard([&] {
        return endpoint_of(ep).send({&piece, 1, to, context, endpoint_of(ep).send_flags()});
    });
}

ssize_t sendv(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
              void* context) noexcept {
    return guard([&] {
        return endpoint_of(ep).send({pieces, count, to, context, endpoint_of(ep).send_flags()});
    });
}

ssize_t sendmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) noexcept {
    return guard([&]() -> ssize_t {
        if (message == nullptr) return -FI_EINVAL;
        return endpoint_of(ep).send(
            {message->msg_iov, message->iov_count, message->addr, message->context, flags});
    });
}

ssize_t inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return guard([&] {
        return endpoint_of(ep).send({&piece, 1, to, nullptr, endpoint_of(ep).send_flags(), true});
    });
}

}  // namespace

void set_calls(Endpoint& endpoint) {
    static fi_ops object_ops{sizeof(fi_ops), &close, &bind, &control, kRefuse, kRefuse, kRefuse};
    static fi_ops_ep ops{sizeof(fi_ops_ep), &cancel, &getopt, &setopt, kRefuse, kRefuse, kRefuse, kRefuse};
    static fi_ops_cm cm{sizeof(fi_ops_cm), &setname, &getname, kRefuse, kRefuse,
                        kRefuse,           kRefuse,  kRefuse,  kRefuse, &join};
    // There is no room for remote data in a datagram that is the message.
    static fi_ops_msg messages{sizeof(fi_ops_msg), &recv,   &recvv,  &recvmsg, &send, &sendv,
                               &sendmsg,           &inject, kRefuse, kRefuse};
    // Tagged messages, RMA, atomics, collectives: who calls them anyway gets -FI_ENOSYS.
    static fi_ops_tagged tagged = refuse_all<fi_ops_tagged>();
    static fi_ops_rma rma = refuse_all<fi_ops_rma>();
    static fi_ops_atomic atomic = refuse_all<fi_ops_atomic>();
    static fi_ops_collective collective = refuse_all<fi_ops_collective>();
    endpoint.fid_ep::fid.ops = &object_ops;
    endpoint.tagged = &tagged;
    endpoint.rma = &rma;
    endpoint.atomic = &atomic;
    endpoint.collective = &collective;
    endpoint.fid_ep::ops = &ops;
    endpoint.fid_ep::cm = &cm;
    endpoint.fid_ep::msg = &messages;
}

}  // namespace mcastcoll::ofi::datagram
