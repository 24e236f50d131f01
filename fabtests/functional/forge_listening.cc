#include "functional/forge_listening.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "functional/multicast_sockets.h"
#include "support/failure.h"

namespace mcastcoll::fabtest {
namespace {

constexpr std::size_t kMaxCaptured = 4096;

bool same(const sockaddr_in& one, const sockaddr_in& other) {
    return one.sin_addr.s_addr == other.sin_addr.s_addr && one.sin_port == other.sin_port;
}

}  // namespace

sockaddr_in service_address(const Board& board, unsigned rank) {
    sockaddr_in address{};
    std::memcpy(&address, board.places[rank].address.data(), sizeof address);
    CHECK(address.sin_family == AF_INET);
    return address;
}

Wiretap::Wiretap()
    : descriptor_(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP))) {
    CHECK(descriptor_ >= 0);
    const int bytes = 8 << 20;
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
}

Wiretap::~Wiretap() {
    close(descriptor_);
}

void Wiretap::listen(const Board& board, unsigned members) {
    std::array<std::byte, 2048> packet;
    for (ssize_t got = 0; (got = recv(descriptor_, packet.data(), packet.size(), 0)) >= 0;) {
        iphdr ip{};
        udphdr udp{};
        constexpr std::size_t kHeaders = sizeof ip + sizeof udp;
        const auto bytes = static_cast<std::size_t>(got);
        if (bytes < kHeaders) continue;
        std::memcpy(&ip, packet.data(), sizeof ip);
        std::memcpy(&udp, packet.data() + sizeof ip, sizeof udp);
        if (ip.protocol != IPPROTO_UDP || ip.ihl != sizeof ip / 4) continue;
        Captured one{{packet.data() + kHeaders, packet.data() + bytes}};
        one.from.sin_family = one.to.sin_family = AF_INET;
        one.from.sin_addr.s_addr = ip.saddr, one.from.sin_port = udp.source;
        one.to.sin_addr.s_addr = ip.daddr, one.to.sin_port = udp.dest;
        unsigned known = 0;
        for (unsigned rank = 0; rank < members; ++rank) {
            // Packets of other programs may pass before the members exist.
            if (board.places[rank].address_bytes == 0) continue;
            const sockaddr_in service = service_address(board, rank);
            known += same(service, one.from) + same(service, one.to);
        }
        if (known == 2 && wire::peek_list(one.message) && captured_.size() < kMaxCaptured)
            captured_.push_back(std::move(one));
    }
}

std::optional<std::uint64_t> Wiretap::list() const {
    return captured_.empty() ? std::nullopt : wire::peek_list(captured_.back().message);
}

std::set<std::uint64_t> Wiretap::lists() const {
    std::set<std::uint64_t> lists;
    for (const Captured& one : captured_) lists.insert(wire::peek_list(one.message).value());
    return lists;
}

Eavesdropper::Eavesdropper(const std::vector<sockaddr_in>& groups) : groups_(groups) {
    for (const sockaddr_in& group : groups) {
        const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(descriptor >= 0);
        descriptors_.push_back(descriptor);
        const int shared = 1;
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &shared, sizeof shared);
        if (bind(descriptor, reinterpret_cast<const sockaddr*>(&group), sizeof group) != 0) continue;
        for (const in_addr& address : interface_addresses()) {
            const ip_mreq membership{group.sin_addr, address};
            setsockopt(descriptor, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership);
        }
    }
}

Eavesdropper::~Eavesdropper() {
    for (const int descriptor : descriptors_) close(descriptor);
}

const std::optional<Eavesdropper::Captured>& Eavesdropper::latest() {
    std::array<std::byte, 65536> bytes;
    sockaddr_in from{};
    socklen_t length = sizeof from;
    auto* const source = reinterpret_cast<sockaddr*>(&from);
    for (std::size_t i = 0; i < descriptors_.size(); ++i)
        for (ssize_t got = 0;
             (got = recvfrom(descriptors_[i], bytes.data(), bytes.size(), 0, source, &length)) >= 0;) {
            const Bytes packet(bytes.data(), static_cast<std::size_t>(got));
            if (!packet.empty() && packet.back() == kForgedByte) continue;
            const wire::Decoded decoded = wire::decode(packet, wire::Checksum::none);
            if (decoded.refusal != wire::Refusal::none || decoded.header.kind != wire::Kind::fragment)
                continue;
            latest_ = {decoded.header, {}, from, groups_[i]};
            std::copy_n(packet.begin(), latest_->bytes.size(), latest_->bytes.begin());
        }
    return latest_;
}

}  // namespace mcastcoll::fabtest
