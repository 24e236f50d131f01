// What fi_getinfo() says of datagram endpoints with multicast, to applications that ask for them.
#pragma once

#include <rdma/fi_endpoint.h>

#include <string_view>

#include "base/result.h"
#include "provider/owners.h"
#include "transport/interface.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi::datagram {

inline constexpr std::string_view kFabricName = "mcastcoll-udp";

// Operation flags that such endpoints know. What is sent has left when the call returns, so all promises
// about the buffer and the transmission are kept anyway.
inline constexpr std::uint64_t kSendFlags =
    FI_COMPLETION | FI_MULTICAST | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MORE;
inline constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MORE;
inline constexpr std::size_t kMostOperations = 65536;  // posted receives of an endpoint

inline constexpr std::uint64_t kDirections = FI_SEND | FI_RECV;
// Who names none has both.
inline std::uint64_t directions_of(const fi_info& info) {
    return (info.caps & kDirections) != 0 ? info.caps & kDirections : kDirections;
}

// One info for IPv4, one for IPv6, as far as they are wanted and there.
Result<InfoOwner> offers(const InfoRequest& request);

// Of reliable messages, not of datagrams.
bool is_reliable(const fi_info& info);
// Where an endpoint with this info is to be bound.
Result<SocketAddress> own_address(const fi_info& info, const Interface& interface);

}  // namespace mcastcoll::ofi::datagram
