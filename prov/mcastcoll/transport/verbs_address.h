// How addresses look to RDMA: groups and senders as GIDs, senders as what is in front of each received
// datagram. Pure, and there without rdma-core, too.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "transport/socket_address.h"

namespace mcastcoll {

using Gid = std::array<std::byte, 16>;

// In front of each datagram that a queue pair receives: a global route header, or the IP header of RoCE v2
// in the place of one, an IPv4 header at the end of it.
inline constexpr std::size_t kRouteHeaderBytes = 40;
// Where the kernel describes its RDMA devices.
inline constexpr const char* kRdmaDevices = "/sys/class/infiniband";

// An IPv4 address as RoCE v2 has it, mapped; an IPv6 address as it is.
Gid gid_of(const SocketAddress& address);
// Back again. A mapped address becomes IPv4. Port 0.
SocketAddress address_of(const Gid& gid);
// Whether a subnet manager chose the group: its addresses are marked (A01B), and asked for as they are,
// whatever the family of all others.
bool is_assigned_group(const SocketAddress& group);
// UD has no ports, but several queue pairs at one address: 1 to 65535, made of the queue pair's number.
std::uint16_t port_of_queue_pair(std::uint32_t number);
// Who a datagram is from, by its route header; port 0. Nothing when the header is none.
std::optional<SocketAddress> source_in(std::span<const std::byte, kRouteHeaderBytes> header);

// The network interface of an RDMA device, "mlx5_0" or with its port "mlx5_0:1"; empty when there is none.
std::string interface_of_rdma_device(std::string_view device, const std::string& devices = kRdmaDevices);
// Why this machine cannot do RDMA; empty when it has a device and the means to ask for it.
std::string why_no_rdma();

}  // namespace mcastcoll
