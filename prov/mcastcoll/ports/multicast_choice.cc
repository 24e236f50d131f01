#include "ports/multicast_choice.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include "transport/verbs_address.h"
#include "wire/packet.h"

namespace mcastcoll::ports {
namespace {

// Several roots may multicast at the same time, so one root may fill only a quarter of a receiver's buffer.
constexpr std::size_t kBufferShare = 4;
constexpr std::size_t kMaxDatagram = group::kMaxFragment + wire::kHeaderBytes;

}  // namespace

Result<MulticastChoice> choose_interface(const provider::Settings& settings, Bytes own_address) {
    const auto own = transport::SocketAddress::from_bytes(own_address);
    const std::string of_device = transport::interface_of_rdma_device(settings.iface);
    auto found = !of_device.empty()        ? transport::find_interface_by_name(of_device)
                 : !settings.iface.empty() ? transport::find_interface(settings.iface)
                 : own                     ? transport::find_interface_by_address(own.value())
                                           : transport::find_interface_by_name("lo");
    if (!found) return found.error();
    MulticastChoice choice{std::move(found).value()};
    const transport::Interface& interface = choice.interface;
    choice.family = settings.ip != 0 ? settings.ip : (own && own.value().family() == AF_INET6) ? 6 : 4;
    if (choice.family == 4 ? interface.v4.has_value() : interface.v6.has_value()) return choice;
    return Error{FI_EADDRNOTAVAIL,
                 fmt::format("interface {} has no IPv{} address", interface.name, choice.family)};
}

transport::MulticastOptions multicast_options(const provider::Settings& settings,
                                              const MulticastChoice& choice) {
    return {choice.interface, choice.family, settings.ttl, kMaxDatagram, settings.memberships};
}

transport::UdpMulticastOptions udp_options(const provider::Settings& settings,
                                           const MulticastChoice& choice) {
    transport::UdpMulticastOptions options{multicast_options(settings, choice)};
    options.receive_buffer_bytes = settings.rcvbuf;
    options.send_buffer_bytes = settings.sndbuf;
    // Without segmentation offload an injected fault hits a single datagram, as a fault of the network does;
    // with offload a fault would hit a whole run of datagrams.
    options.offload = !settings.fault.spoils();
    return options;
}

transport::SocketAddress random_group(const provider::Settings& settings, int family, std::uint16_t otherwise,
                                      std::span<const std::byte, transport::kGroupRandomBytes> random) {
    const transport::SocketAddress group = transport::random_group_address(family, random);
    const int port = settings.port != 0 ? settings.port : otherwise;
    return port != 0 ? group.with_port(static_cast<std::uint16_t>(port)) : group;
}

std::size_t window_of(std::size_t receive_buffer_bytes, std::size_t datagram_bytes) {
    return receive_buffer_bytes / (kBufferShare * transport::datagram_cost(datagram_bytes));
}

}  // namespace mcastcoll::ports
