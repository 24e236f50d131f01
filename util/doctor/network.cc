#include <errno.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>

#include "base/system.h"
#include "probes.h"
#include "topology/discover.h"
#include "transport/multicast_hub.h"

namespace mcastcoll::doctor {
namespace {

Look<bool> feature(const std::string& interface, std::uint32_t command) {
    const FileDescriptor query(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ethtool_value value{};
    value.cmd = command;
    ifreq request{};
    interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    request.ifr_data = reinterpret_cast<char*>(&value);
    if (::ioctl(query.get(), SIOCETHTOOL, &request) != 0)
        return Look<bool>::failed(fmt::format("the interface does not report it: {}", ::strerror(errno)));
    return value.data != 0;
}

std::string driver_of(const std::string& interface) {
    std::error_code error;
    const auto link =
        std::filesystem::read_symlink(fmt::format("/sys/class/net/{}/device/driver", interface), error);
    return error ? std::string() : link.filename().string();
}

Look<std::uint64_t> speed_of(const std::string& interface) {
    const auto speed = number_in(fmt::format("/sys/class/net/{}/speed", interface));
    if (!speed) return Look<std::uint64_t>::failed("the interface does not report its speed");
    return speed;
}

std::string without_port(const transport::SocketAddress& address) {
    const std::string text = address.with_port(0).to_string();
    std::string host = text.substr(0, text.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return host;
}

void describe(const provider::Settings& settings, const ports::MulticastChoice& choice, Network& facts) {
    const transport::Interface& interface = choice.interface;
    const transport::SocketAddress own = *ports::multicast_options(settings, choice).address();
    facts.interface = interface.name;
    facts.address = without_port(own);
    facts.family = choice.family;
    facts.ttl = settings.ttl;
    facts.mtu = interface.mtu;
    facts.up = interface.up;
    facts.multicast = interface.multicast;
    facts.loopback = interface.loopback;
    facts.driver = driver_of(interface.name);
    facts.speed_mbit = speed_of(interface.name);
    facts.segmentation = feature(interface.name, ETHTOOL_GGSO);
    facts.coalescing = feature(interface.name, ETHTOOL_GGRO);
    const auto found = topology::discover({}, own.address_bytes());
    if (const auto& subnet = found.place.at(topology::Level::segment)) facts.subnet = subnet->name.view();
    const auto all = number_in("/proc/sys/net/ipv4/conf/all/rp_filter");
    const auto one = number_in(fmt::format("/proc/sys/net/ipv4/conf/{}/rp_filter", interface.name));
    facts.reverse_path = all && one ? Look<std::uint64_t>(std::max(*all, *one)) : all ? one : all;
}

void try_sockets(const provider::Settings& settings, const ports::MulticastChoice& choice, Network& facts) {
    const auto opened = transport::MulticastHub::open(ports::udp_options(settings, choice));
    if (!opened) {
        facts.socket_error = opened.error().message;
        return;
    }
    transport::MulticastHub& hub = *opened.value();
    std::array<std::byte, transport::kGroupRandomBytes> random{};
    if (const auto filled = kernel_random(random); !filled) return;
    const transport::SocketAddress group = ports::random_group(settings, choice.family, 0, random);
    facts.group = without_port(group);
    auto joined = hub.join(group);
    Result<void> sends = {};
    for (const bool loop : {false, true})
        if (const auto sender = hub.sender(loop); !sender) sends = sender.error();
    if (!joined || !sends) {
        facts.socket_error = !joined ? joined.error().message : sends.error().message;
        return;
    }
    facts.member = is_member(choice.interface.name, group);
    facts.datagram_bytes = hub.max_payload();
    facts.buffer_granted = hub.receive_buffer_bytes();
    facts.buffer_forced = facts.rmem_max && facts.buffer_granted > 2 * *facts.rmem_max;
    facts.window = ports::window_of(facts.buffer_granted, facts.datagram_bytes);
}

}  // namespace

// IPv4: the address in network byte order, read as a native integer and printed as %08X; IPv6: 32 digits.
Look<bool> is_member(const std::string& interface, const transport::SocketAddress& group) {
    const bool v4 = group.family() == AF_INET;
    const char* const path = v4 ? "/proc/net/igmp" : "/proc/net/igmp6";
    std::ifstream file(path);
    if (!file) return Look<bool>::failed(fmt::format("cannot read {}: {}", path, ::strerror(errno)));
    std::string wanted;
    const Bytes bytes = group.address_bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const bool turned = v4 && std::endian::native == std::endian::little;
        const auto byte = std::to_integer<unsigned>(bytes[turned ? bytes.size() - 1 - i : i]);
        wanted += v4 ? fmt::format("{:02X}", byte) : fmt::format("{:02x}", byte);
    }
    bool at_interface = false;
    for (std::string line; std::getline(file, line);) {
        if (v4 && !line.starts_with('\t'))
            at_interface = line.find('\t' + interface + ' ') != std::string::npos;
        if (!v4)
            at_interface = line.find(' ' + interface + ' ') != std::string::npos ||
                           line.find('\t' + interface + ' ') != std::string::npos;
        if (at_interface && line.find(wanted) != std::string::npos) return true;
    }
    return false;
}

OpenedNetwork look_at_network(const provider::Settings& settings, Bytes own_address) {
    OpenedNetwork network;
    Network& facts = network.facts;
    facts.buffer_wanted = settings.rcvbuf;
    facts.rmem_max = number_in("/proc/sys/net/core/rmem_max");
    transport::SocketAddress any(in_addr{INADDR_ANY}, 0);
    auto choice = ports::choose_interface(
        settings, own_address.empty() && settings.iface.empty() ? any.bytes() : own_address);
    if (!choice) {
        facts.error = choice.error().message;
        return network;
    }
    describe(settings, choice.value(), facts);
    try_sockets(settings, choice.value(), facts);
    if (facts.socket_error.empty()) network.choice = std::move(choice).value();
    return network;
}

}  // namespace mcastcoll::doctor
