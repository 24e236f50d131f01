#include "functional/forge_spoofed.h"

#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/failure.h"

namespace mcastcoll::fabtest {

RawSender::RawSender() : descriptor_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW)) {}

RawSender::~RawSender() {
    if (descriptor_ >= 0) close(descriptor_);
}

// The kernel fills in the packet's length, identification and checksum; a UDP checksum of zero means no
// checksum.
std::vector<std::byte> raw_packet(Bytes payload, const sockaddr_in& from, const sockaddr_in& to) {
    iphdr ip{};
    ip.version = 4;
    ip.ihl = sizeof ip / 4;
    ip.ttl = 1;
    ip.protocol = IPPROTO_UDP;
    ip.saddr = from.sin_addr.s_addr;
    ip.daddr = to.sin_addr.s_addr;
    udphdr udp{};
    udp.source = from.sin_port;
    udp.dest = to.sin_port;
    udp.len = htons(static_cast<std::uint16_t>(sizeof udp + payload.size()));
    std::vector<std::byte> packet(sizeof ip + sizeof udp + payload.size());
    std::memcpy(packet.data(), &ip, sizeof ip);
    std::memcpy(packet.data() + sizeof ip, &udp, sizeof udp);
    std::memcpy(packet.data() + sizeof ip + sizeof udp, payload.data(), payload.size());
    return packet;
}

void RawSender::send(Bytes payload, const sockaddr_in& from, const sockaddr_in& to) const {
    if (descriptor_ < 0) return;
    setsockopt(descriptor_, IPPROTO_IP, IP_MULTICAST_IF, &from.sin_addr, sizeof from.sin_addr);
    const auto packet = raw_packet(payload, from, to);
    sendto(descriptor_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

SecretFile::SecretFile() : path_("/tmp/mcc-secret-XXXXXX") {
    const int descriptor = mkstemp(path_.data());
    std::array<std::byte, 32> secret;
    CHECK(descriptor >= 0 && getrandom(secret.data(), secret.size(), 0) == sizeof secret);
    CHECK(fchmod(descriptor, 0600) == 0 && write(descriptor, secret.data(), secret.size()) == sizeof secret);
    close(descriptor);
}

SecretFile::~SecretFile() {
    unlink(path_.c_str());
}

}  // namespace mcastcoll::fabtest
