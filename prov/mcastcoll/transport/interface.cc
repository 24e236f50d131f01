#include "transport/interface.h"

#include <errno.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "base/file_descriptor.h"
#include "base/system.h"

namespace mcastcoll::transport {
namespace {

void add_address(Interface& interface, const sockaddr* raw) {
    if (raw == nullptr || (raw->sa_family != AF_INET && raw->sa_family != AF_INET6)) return;
    const socklen_t size = raw->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    auto address = SocketAddress::from(raw, size);
    if (!address) return;
    const SocketAddress found = address.value().with_port(0);
    interface.addresses.push_back(found);
    std::optional<SocketAddress>& best = found.family() == AF_INET ? interface.v4 : interface.v6;
    if (!best || (best->is_link_local() && !found.is_link_local())) best = found;
}

// True for a network card and for an interface on top of other interfaces, such as a bond or a VLAN.
bool leads_out(const std::filesystem::path& interface) {
    std::error_code none;
    if (std::filesystem::exists(interface / "device", none)) return true;
    for (std::filesystem::directory_iterator one(interface, none), end; !none && one != end;
         one.increment(none))
        if (one->path().filename().string().starts_with("lower_")) return true;
    return false;
}

// True for bridges such as Docker's and libvirt's, whose ports lead only to containers and virtual machines
// of this host. A bridge with a network card leads to other hosts.
bool is_inner_bridge(const std::string& name) {
    const std::filesystem::path all = "/sys/class/net";
    std::error_code none;
    if (!std::filesystem::exists(all / name / "bridge", none)) return false;
    for (std::filesystem::directory_iterator port(all / name / "brif", none), end; !none && port != end;
         port.increment(none))
        if (leads_out(all / port->path().filename())) return false;
    return true;
}

std::string describe(const std::vector<Interface>& interfaces) {
    std::string text;
    for (const Interface& interface : interfaces) {
        if (!text.empty()) text += ", ";
        text += interface.name;
        for (const SocketAddress& address : interface.addresses) {
            std::string host = address.to_string();
            text += " " + host.substr(0, host.rfind(':'));
        }
    }
    return text.empty() ? "none" : text;
}

const Interface* find_for_wildcard(const std::vector<Interface>& interfaces, int family) {
    const auto usable = [family](const Interface& interface) {
        return interface.up && (family == AF_INET ? interface.v4 : interface.v6).has_value();
    };
    for (const Interface& interface : interfaces)
        if (usable(interface) && interface.multicast && !interface.loopback) return &interface;
    for (const Interface& interface : interfaces)
        if (usable(interface) && interface.loopback) return &interface;
    return nullptr;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
    ifaddrs* raw = nullptr;
    if (::getifaddrs(&raw) != 0) return system_error(errno, "cannot list the network interfaces");
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
    const FileDescriptor query(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!query.valid()) return system_error(errno, "cannot list the network interfaces");

    std::vector<Interface> interfaces;
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
        // Aliases ("eth0:1") are labels of addresses, not separate interfaces.
        const std::string_view label = entry->ifa_name;
        const std::string name(label.substr(0, label.find(':')));
        auto place = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&name](const Interface& interface) { return interface.name == name; });
        if (place == interfaces.end()) {
            Interface fresh;
            fresh.name = name;
            fresh.index = ::if_nametoindex(name.c_str());
            ifreq request{};
            name.copy(request.ifr_name, sizeof request.ifr_name - 1);
            // The interface has disappeared in the meantime.
            if (fresh.index == 0 || ::ioctl(query.get(), SIOCGIFMTU, &request) != 0) continue;
            fresh.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
            fresh.up = (entry->ifa_flags & IFF_UP) != 0;
            fresh.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
            fresh.multicast = (entry->ifa_flags & IFF_MULTICAST) != 0;
            fresh.inner_bridge = is_inner_bridge(name);
            place = interfaces.insert(interfaces.end(), std::move(fresh));
        }
        add_address(*place, entry->ifa_addr);
    }
    return interfaces;
}

Result<Interface> find_interface_by_name(std::string_view name) {
    auto interfaces = list_interfaces();
    if (!interfaces) return interfaces.error();
    for (const Interface& interface : interfaces.value())
        if (interface.name == name) return interface;
    return Error{ENODEV, fmt::format("there is no interface \"{}\"; the interfaces are: {}", name,
                                     describe(interfaces.value()))};
}

Result<Interface> find_interface_by_address(const SocketAddress& address) {
    if (!address.valid())
        return Error{EINVAL, "finding an interface needs an IPv4 or IPv6 address, and none was given"};
    auto interfaces = list_interfaces();
    if (!interfaces) return interfaces.error();
    if (address.is_wildcard()) {
        const Interface* found = find_for_wildcard(interfaces.value(), address.family());
        if (found != nullptr) return *found;
        return Error{
            ENODEV,
            fmt::format("no interface is up with an address of the family of {}; the interfaces are: {}",
                        address, describe(interfaces.value()))};
    }
    for (Interface& interface : interfaces.value()) {
        for (const SocketAddress& own : interface.addresses) {
            if (!own.same_host(address)) continue;
            // The scope distinguishes equal link-local addresses of different interfaces.
            if (address.scope() != 0 && own.scope() != 0 && address.scope() != own.scope()) continue;
            (own.family() == AF_INET ? interface.v4 : interface.v6) = own;
            return interface;
        }
    }
    // All of 127/8 belongs to the loopback, although only 127.0.0.1 is configured.
    const bool loops = address.family() == AF_INET && address.address_bytes()[0] == std::byte{127};
    for (Interface& interface : interfaces.value()) {
        if (!loops || !interface.loopback) continue;
        interface.v4 = address.with_port(0);
        return interface;
    }
    return Error{EADDRNOTAVAIL, fmt::format("no interface has the address {}; the interfaces are: {}",
                                            address, describe(interfaces.value()))};
}

Result<Interface> find_interface(std::string_view name_or_address) {
    if (auto address = SocketAddress::parse(name_or_address))
        return find_interface_by_address(address.value());
    return find_interface_by_name(name_or_address);
}

AddressReach reach_of(const SocketAddress& address, const std::vector<Interface>& interfaces) {
    for (const Interface& interface : interfaces)
        for (const SocketAddress& own : interface.addresses) {
            if (!own.same_host(address)) continue;
            if (address.scope() != 0 && own.scope() != 0 && address.scope() != own.scope()) continue;
            if (interface.loopback) return AddressReach::loopback;
            if (interface.inner_bridge) return AddressReach::inner_bridge;
            return address.is_link_local() ? AddressReach::link : AddressReach::network;
        }
    return AddressReach::network;
}

std::vector<std::size_t> order_addresses(std::span<const SocketAddress> addresses,
                                         const std::vector<Interface>& interfaces, std::string_view wanted) {
    std::vector<std::size_t> order(addresses.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return reach_of(addresses[i], interfaces); });
    const auto by_address = SocketAddress::parse(wanted);
    const auto is_wanted = [&](std::size_t i) {
        if (by_address) return addresses[i].same_host(by_address.value());
        const auto named = std::ranges::find(interfaces, wanted, &Interface::name);
        return named != interfaces.end() && std::ranges::any_of(named->addresses, [&](const auto& own) {
                   return own.same_host(addresses[i]);
               });
    };
    const bool found =
        std::ranges::any_of(order, [&](std::size_t i) { return addresses[i].valid() && is_wanted(i); });
    if (found) std::erase_if(order, [&](std::size_t i) { return addresses[i].valid() && !is_wanted(i); });
    return order;
}

}  // namespace mcastcoll::transport
