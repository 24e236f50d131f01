// Addresses in RDMA form: groups and senders as GIDs, and senders in the header before each received
// datagram. Pure code, also built without rdma-core.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "transport/socket_address.h"

namespace mcastcoll::transport {

using Gid = std::array<std::byte, 16>;

// Size of the header that precedes each datagram received by a queue pair: a global route header, or the IP
// header of RoCE v2 in its place; an IPv4 header fills its end.
inline constexpr std::size_t kRouteHeaderBytes = 40;
// The folder in which the kernel describes its RDMA devices.
inline constexpr const char* kRdmaDevices = "/sys/class/infiniband";

// The GID of an address: an IPv4 address mapped as in RoCE v2, an IPv6 address unchanged.
Gid gid_of(const SocketAddress& address);
// The address of a GID, with port 0. A mapped address becomes IPv4.
SocketAddress address_of(const Gid& gid);
// Whether a subnet manager chose the group's address. Such an address contains the marker A01B and is joined
// unchanged, whatever the family of the endpoint's other addresses.
bool is_assigned_group(const SocketAddress& group);
// Derives a port number, 1 to 65535, from the number of a queue pair: UD has no ports, but several queue
// pairs may share an address.
std::uint16_t port_of_queue_pair(std::uint32_t number);
// The sender of a datagram, from the header before it, with port 0. Empty if the header is invalid.
std::optional<SocketAddress> source_in(std::span<const std::byte, kRouteHeaderBytes> header);

// Returns the network interface of an RDMA device, which is given as "mlx5_0" or with its port as "mlx5_0:1".
// Empty if the device has no network interface.
std::string interface_of_rdma_device(std::string_view device, const std::string& devices = kRdmaDevices);
// The reason why this host cannot use RDMA; empty if it has a device and access to the connection manager.
std::string why_no_rdma();

}  // namespace mcastcoll::transport
