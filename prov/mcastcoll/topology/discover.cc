#include "topology/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <bit>
#include <memory>

#include "base/system.h"
#include "topology/machine.h"
#include "transport/socket_address.h"

namespace mcastcoll::topology {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

constexpr std::uint64_t kSeed = 0x6d6363686f737401;

Result<Subnet> own_subnet(Bytes address) {
    ifaddrs* raw = nullptr;
    if (::getifaddrs(&raw) != 0) return system_error(errno, "cannot list the network interfaces");
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || entry->ifa_netmask == nullptr) continue;
        const int family = entry->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        auto own = transport::SocketAddress::from(entry->ifa_addr, size);
        auto mask = transport::SocketAddress::from(entry->ifa_netmask, size);
        if (!own || !mask) continue;
        unsigned bits = 0;
        for (const std::byte byte : mask.value().address_bytes())
            bits += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
        const Subnet subnet = Subnet::around(own.value().address_bytes(), bits);
        const Subnet alone = Subnet::around(own.value().address_bytes(), 128);
        // All of 127/8 is local although only one address of it is configured.
        const bool loopback = family == AF_INET && own.value().address_bytes()[0] == std::byte{127};
        if (loopback ? subnet.contains(address) : alone.contains(address)) return subnet;
    }
    return Error{EADDRNOTAVAIL, "no interface has the address of this process"};
}

Discovery discover_host() {
    Discovery found;
    if (auto identity = read_host_identity()) {
        found.place.set(Level::host, host_id(identity.value()), host_name());
    } else {
        found.no_memory = identity.error().message;
        found.notes.push_back(fmt::format("no shared memory with other processes: {}", found.no_memory));
    }
    if (auto machine = Machine::of_this_system())
        machine.value().locate(machine.value().own(), found.place);
    else
        found.notes.push_back(machine.error().message);
    return found;
}

}  // namespace

Result<Override> read_override(const std::string& value) {
    constexpr std::string_view kFile = "file:";
    const bool named = value.starts_with(kFile);
    if (!named && !value.starts_with('/') && !value.starts_with("./") && !value.starts_with("../"))
        return Override::parse_words(value);
    const std::string path = named ? value.substr(kFile.size()) : value;
    auto text = read_text(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path, kMaxFileBytes);
    if (!text) return text.error();
    return Override::parse_file(text.value(), path);
}

Discovery discover(const Override& override, Bytes address) {
    static const Discovery host = discover_host();
    Discovery found = host;
    if (!address.empty()) {
        if (auto subnet = own_subnet(address)) {
            found.place.set_named(Level::site, subnet.value().to_string());
            found.place.set_named(Level::segment, subnet.value().to_string());
        } else {
            found.notes.push_back(fmt::format("site and segment are unknown: {}", subnet.error().message));
        }
    }
    override.apply(found.place, address);
    return found;
}

Result<HostIdentity> read_host_identity() {
    constexpr const char* kBoot = "/proc/sys/kernel/random/boot_id";
    HostIdentity identity;
    auto boot = read_text(FileDescriptor(::open(kBoot, O_RDONLY | O_CLOEXEC)), kBoot, kMaxFileBytes);
    if (!boot) return boot.error();
    if (boot.value().empty()) return system_error(EIO, kBoot);
    identity.boot = std::move(boot).value();

    struct stat found = {};
    for (const auto& [path, inode] : {std::pair{"/proc/self/ns/pid", &identity.pid_namespace},
                                      {"/proc/self/ns/net", &identity.net_namespace},
                                      {"/proc/self/ns/user", &identity.user_namespace}}) {
        if (::stat(path, &found) != 0) return system_error(errno, path);
        *inode = found.st_ino;
    }
    if (::stat("/dev/shm", &found) != 0) return system_error(errno, "/dev/shm");
    if (!S_ISDIR(found.st_mode)) return Error{ENOTDIR, "/dev/shm is not a folder"};
    if (::access("/dev/shm", W_OK | X_OK) != 0) return system_error(errno, "/dev/shm");
    identity.shm_device = found.st_dev;
    identity.shm_inode = found.st_ino;
    identity.user = ::geteuid();
    return identity;
}

std::uint64_t host_id(const HostIdentity& identity) {
    const std::string text =
        fmt::format("{} pid {} net {} user {} shm {} {} uid {}", identity.boot, identity.pid_namespace,
                    identity.net_namespace, identity.user_namespace, identity.shm_device, identity.shm_inode,
                    identity.user);
    const std::uint64_t hash = stable_hash(std::as_bytes(std::span(text)), kSeed);
    return hash == 0 ? 1 : hash;
}

std::string host_name() {
    std::array<char, 256> text{};
    if (::gethostname(text.data(), text.size() - 1) != 0) return "";
    const std::string_view name = text.data();
    return std::string(name.substr(0, name.find('.')));
}

Result<std::string> read_text(const FileDescriptor& file, const std::string& name, std::size_t max) {
    if (!file.valid()) return system_error(errno, name);
    std::string text;
    std::array<char, 16384> chunk;
    for (;;) {
        const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
        if (got < 0) return system_error(errno, name);
        if (got == 0) return text;
        text.append(chunk.data(), static_cast<std::size_t>(got));
        if (text.size() > max) return Error{EFBIG, fmt::format("{}: longer than {} bytes", name, max)};
    }
}

}  // namespace mcastcoll::topology
