#include "topology/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "base/file_descriptor.h"
#include "base/system.h"
#include "topology/host_identity.h"
#include "topology/machine.h"
#include "transport/socket_address.h"

namespace mcastcoll::topology {
namespace {

constexpr std::size_t kMostFileBytes = 1 << 20;

Result<std::string> read_file(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return system_error(errno, path);
    std::string text;
    std::array<char, 4096> chunk;
    for (;;) {
        const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
        if (got < 0) return system_error(errno, path);
        if (got == 0) return text;
        text.append(chunk.data(), static_cast<std::size_t>(got));
        if (text.size() > kMostFileBytes)
            return Error{EFBIG, fmt::format("{}: longer than {} bytes", path, kMostFileBytes)};
    }
}

unsigned bits_of(const sockaddr* mask) {
    const Bytes bytes =
        mask->sa_family == AF_INET
            ? std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr, 1))
            : std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr, 1));
    unsigned bits = 0;
    for (const std::byte byte : bytes)
        bits += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
    return bits;
}

}  // namespace

Result<Override> read_override(const std::string& value) {
    constexpr std::string_view kFile = "file:";
    const bool named = value.starts_with(kFile);
    if (!named && !value.starts_with('/') && !value.starts_with("./") && !value.starts_with("../"))
        return Override::parse_words(value);
    const std::string path = named ? value.substr(kFile.size()) : value;
    auto text = read_file(path);
    if (!text) return text.error();
    return Override::parse_file(text.value(), path);
}

Result<Subnet> own_subnet(Bytes address) {
    ifaddrs* raw = nullptr;
    if (::getifaddrs(&raw) != 0) return system_error(errno, "cannot list the network interfaces");
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || entry->ifa_netmask == nullptr) continue;
        const int family = entry->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        auto own = SocketAddress::from(entry->ifa_addr,
                                       family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        if (!own) continue;
        const Subnet subnet = Subnet::around(own.value().address_bytes(), bits_of(entry->ifa_netmask));
        const Subnet alone = Subnet::around(own.value().address_bytes(), 128);
        // All of 127/8 is ours although only one address of it is configured.
        const bool loopback = family == AF_INET && own.value().address_bytes()[0] == std::byte{127};
        if (loopback ? subnet.contains(address) : alone.contains(address)) return subnet;
    }
    return Error{EADDRNOTAVAIL, "no interface has the own address"};
}

Discovery discover_host() {
    Discovery found;
    if (auto identity = read_host_identity())
        found.place.set(Level::host, host_id(identity.value()), host_name());
    else
        found.notes.push_back(
            fmt::format("shares no memory with other processes: {}", identity.error().message));
    if (auto machine = Machine::of_this_system())
        machine.value().locate(machine.value().own(), found.place);
    else
        found.notes.push_back(machine.error().message);
    return found;
}

Discovery discover(const Override& override, Bytes address) {
    static const Discovery host = discover_host();
    Discovery found = host;
    if (!address.empty()) {
        if (auto subnet = own_subnet(address)) {
            found.place.set_named(Level::site, subnet.value().to_string());
            found.place.set_named(Level::segment, subnet.value().to_string());
        } else {
            found.notes.push_back(fmt::format("site and segment are not known: {}", subnet.error().message));
        }
    }
    override.apply(found.place, address);
    return found;
}

}  // namespace mcastcoll::topology
