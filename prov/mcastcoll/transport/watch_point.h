// WatchPoint: the data by which peers detect the death of a process. Each process sends its watch point to
// its peers in the join. Received watch points are untrusted input and are validated.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "transport/socket_address.h"

namespace mcastcoll::transport {

struct WatchPoint {
    // The address of the listening TCP socket; empty for a process without IP. A wildcard is not a
    // destination: the receiver replaces a wildcard by the address under which it knows the peer.
    SocketAddress listener;
    // The pid on the process's own host; 0: unknown. The start time distinguishes the process from a later
    // one with the same pid.
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;
    // Hash of the boot id, the pid namespace and the network namespace: equal for processes that can watch
    // each other through a pidfd.
    std::uint64_t host = 0;
    // The first bytes that a watcher sends on a connection (watch_listener.h); random for each process.
    std::uint32_t token = 0;
};

inline constexpr std::size_t kWatchPointBytes = 48;
std::array<std::byte, kWatchPointBytes> encode_watch_point(const WatchPoint& point);
// Accepts exactly kWatchPointBytes.
Result<WatchPoint> decode_watch_point(Bytes bytes);

// Identifies this host and its namespaces; 0 if /proc does not provide the data.
std::uint64_t local_host_id();
// Start time of a process in clock ticks since boot, from /proc/PID/stat.
Result<std::uint64_t> process_start_time(pid_t pid);

}  // namespace mcastcoll::transport
