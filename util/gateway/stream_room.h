// Send capacity of a stream: the free congestion window as reported by the kernel, minus the bytes queued
// since.
#pragma once

#include <linux/tcp.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"

namespace mcastcoll::gateway {

class StreamRoom {
  public:
    // Highest limit of unsent bytes in the kernel: low enough for small frames to overtake, and so that the
    // slowest stream does not end long after the others.
    static constexpr std::uint64_t kMaxUnsent = 128 * 1024;

    // Queries the kernel, unless the last query is recent.
    void look(int socket, Nanoseconds now);
    // Enlarges the socket buffer to the stream's needs.
    void fit_buffers(int socket) const;
    void note_sent(std::size_t bytes) { queued_ += static_cast<std::int64_t>(bytes); }

    Nanoseconds looked() const { return looked_; }
    // Free bytes of the congestion window beyond the bytes in flight and queued; a lower bound since
    // looked(), except after losses.
    std::int64_t left() const { return window_ - queued_; }
    // Bytes per second, one window per round trip; 0: unknown.
    std::uint64_t rate() const { return rate_; }
    // Limit of unsent bytes in the kernel beyond the window.
    std::size_t max_unsent() const;
    const std::optional<tcp_info>& info() const { return info_; }

  private:
    std::optional<tcp_info> info_;
    Nanoseconds looked_{0};
    std::int64_t window_ = 0, queued_ = 0;
    std::uint64_t rate_ = 0;
};

}  // namespace mcastcoll::gateway
