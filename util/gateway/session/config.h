// Settings and counters of a gateway session.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace mcastcoll::gateway::session {

inline constexpr unsigned kMaxStreams = 32;
inline constexpr std::size_t kUrgent = 4096;  // frames up to this payload size overtake bulk
inline constexpr std::uint32_t kMinWindow = 4096;

struct Config {
    bool even = false;  // this side's channels have even numbers, the peer's odd ones
    std::uint32_t first_window = 64 * 1024, opened_window = 256 * 1024, max_window = 8 * 1024 * 1024;
    std::size_t send_memory = 64 * 1024 * 1024, bulk_queue = 1024 * 1024;
    std::size_t max_channels = 32768;
    std::uint64_t cap_bytes_per_second = 0;
    Nanoseconds ack_delay = Nanoseconds::from_ms(5), heartbeat = Nanoseconds::from_ms(100),
                silence = Nanoseconds::from_ms(5000);
};

struct Counters {
    std::uint64_t sent_frames = 0, sent_bytes = 0, received_frames = 0, received_bytes = 0;
    std::uint64_t resent_frames = 0, duplicate_frames = 0, early_frames = 0, urgent_frames = 0;
    std::uint64_t opened = 0, accepted = 0, resets = 0, violations = 0;
    std::uint64_t streams_up = 0, streams_lost = 0, sessions_lost = 0, acknowledgements = 0, heartbeats = 0;
};

}  // namespace mcastcoll::gateway::session
