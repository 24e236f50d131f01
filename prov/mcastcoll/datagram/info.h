// The answers of fi_getinfo() for datagram endpoints with multicast.
#pragma once

#include <rdma/fi_endpoint.h>

#include <string_view>

#include "base/result.h"
#include "provider/info_owner.h"
#include "transport/interface.h"
#include "transport/socket_address.h"

namespace mcastcoll::datagram {

inline constexpr std::string_view kFabricName = "mcastcoll-udp";

// Supported operation flags. A message has been sent when the call returns, so all guarantees about buffer
// and transmission hold in any case.
inline constexpr std::uint64_t kSendFlags =
    FI_COMPLETION | FI_MULTICAST | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MORE;
inline constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MORE;
inline constexpr std::size_t kMaxOperations = 65536;  // posted receives of an endpoint

inline constexpr std::uint64_t kDirections = FI_SEND | FI_RECV;
// The directions that the application named, or both if it named none.
inline std::uint64_t directions_of(const fi_info& info) {
    return (info.caps & kDirections) != 0 ? info.caps & kDirections : kDirections;
}

// One info for IPv4 and one for IPv6, if requested and available.
Result<provider::InfoOwner> offers(const provider::InfoRequest& request);

// True for endpoints of reliable messages, false for datagrams.
bool is_reliable(const fi_info& info);
// The address to which an endpoint with this info is bound.
Result<transport::SocketAddress> own_address(const fi_info& info, const transport::Interface& interface);

}  // namespace mcastcoll::datagram
