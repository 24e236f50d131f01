// A non-member client, which connects to an endpoint of libfabric's RDM over TCP ("net" of 1.x, "tcp" of
// 2.x), begins a message as members do, and does not complete it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/file_descriptor.h"

namespace mcastcoll::fabtest {

// The first message of a connection, as in libfabric's prov/tcp (xnet_cm_msg, followed by xnet_rdm_cm).
struct ConnectRequest {
    std::uint8_t version = 3, type = 0;
    std::uint16_t data_bytes = htons(8);
    std::uint32_t segment = 0;
    std::uint64_t connection = 0, message = 0, byte_order = 1;
    std::uint8_t rdm_version = 0, unused = 0;
    std::uint16_t port = 0;  // a connection replaces an earlier one of the same host and port
    std::uint32_t process = 0;
};
static_assert(sizeof(ConnectRequest) == 40);

// The header of a message (xnet_base_hdr).
struct MessageHeader {
    std::uint8_t version = 3, operation = 0;
    std::uint16_t flags = 0;
    std::uint8_t data = 0, regions = 0, header_bytes = 16, unused = 0;
    std::uint64_t bytes = 16 + 32'768;
};
static_assert(sizeof(MessageHeader) == 16);

// Connects from an address of 127/8 and claims to listen at `port`. Returns no descriptor if the connection
// is refused.
inline FileDescriptor connect_foreign(const sockaddr_in& to, const char* from, std::uint16_t port) {
    FileDescriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &own.sin_addr);
    const int on = 1;
    ::setsockopt(connection.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (::bind(connection.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) return {};
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
    ConnectRequest request;
    request.port = htons(port);
    if (::send(connection.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return {};
    return connection;
}

// Sends a message's header without its bytes. Returns false if the connect request has not been answered yet.
inline bool begin_message(const FileDescriptor& connection) {
    std::byte answer[64];
    if (::recv(connection.get(), answer, sizeof answer, MSG_DONTWAIT) <= 0) return false;
    const MessageHeader header;
    return ::send(connection.get(), &header, sizeof header, MSG_NOSIGNAL) == sizeof header;
}

}  // namespace mcastcoll::fabtest
