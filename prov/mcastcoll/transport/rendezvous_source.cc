#include "transport/rendezvous_source.h"

#include <errno.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/system.h"
#include "transport/rendezvous.h"
#include "transport/socket_address.h"

namespace mcastcoll::transport {
namespace {

constexpr std::uint64_t kNameSeed = 0x6d63617374756e78;

}  // namespace

RendezvousSource RendezvousSource::from_bytes(Bytes bytes) {
    RendezvousSource result;
    if (bytes.empty() || bytes.size() > sizeof result.address_) return result;
    std::memcpy(&result.address_, bytes.data(), bytes.size());
    result.size_ = static_cast<socklen_t>(bytes.size());
    return result;
}

std::string RendezvousSource::to_string() const {
    if (auto ip = SocketAddress::from_bytes(bytes())) return ip.value().to_string();
    const std::size_t header = offsetof(sockaddr_un, sun_path) + 1;
    if (size_ <= header) return "(unnamed)";
    return fmt::format("@{}", std::string_view(address_.local.sun_path + 1, size_ - header));
}

Result<RendezvousSource> RendezvousSource::candidate(Bytes inner_address, unsigned attempt,
                                                     std::uint32_t scope) {
    const unsigned number = attempt % kRendezvousCandidates;
    if (auto ip = SocketAddress::from_bytes(inner_address)) {
        const std::uint16_t port = ip.value().port();
        if (port == 0)
            return Error{
                EINVAL,
                fmt::format("the address {} has no port to derive the rendezvous address from", ip.value())};
        return from_bytes(ip.value().seen_from(scope).with_port(rendezvous_ports(port)[number]).bytes());
    }
    if (inner_address.empty()) return Error{EINVAL, "an empty address has no rendezvous address"};
    while (!inner_address.empty() && inner_address.back() == std::byte{0})
        inner_address = inner_address.first(inner_address.size() - 1);
    const std::string name = fmt::format("mcastcoll-{:016x}{:016x}-{}", stable_hash(inner_address, kNameSeed),
                                         stable_hash(inner_address, kNameSeed + 1), number);
    RendezvousSource result;
    result.address_.local.sun_family = AF_UNIX;
    name.copy(result.address_.local.sun_path + 1, sizeof result.address_.local.sun_path - 1);
    result.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return result;
}

}  // namespace mcastcoll::transport
