// WatchPoint: what a process tells its peers at the join so that they can see it die. It travels in messages,
// hence the encoding; it is input when it arrives, hence the validation.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "transport/socket_address.h"

namespace mcastcoll {

struct WatchPoint {
    // Where a TCP connection reaches the process; none for a process without IP. A wildcard cannot be
    // connected to: whoever receives one puts the address he knows the peer by.
    SocketAddress listener;
    // The process, as its host sees it; 0 is unknown. The start time tells it from a later process of the
    // same number.
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;
    // Hash of the boot, the pid namespace and the network namespace: equal for processes that see each other
    // as neighbours.
    std::uint64_t host = 0;
    // What watchers send first on their connection (watch_listener.h): drawn at random for each process.
    std::uint32_t token = 0;
};

inline constexpr std::size_t kWatchPointBytes = 48;
std::array<std::byte, kWatchPointBytes> encode_watch_point(const WatchPoint& point);
// Takes exactly kWatchPointBytes.
Result<WatchPoint> decode_watch_point(Bytes bytes);

// This host and its namespaces; 0 when /proc does not tell.
std::uint64_t local_host_id();
// Start time of a process in clock ticks since boot, from /proc/PID/stat.
Result<std::uint64_t> process_start_time(pid_t pid);

}  // namespace mcastcoll
