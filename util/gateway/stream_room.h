// How much a stream takes: what its kernel says of the congestion window, and what has been given to it
// since.
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.h"
#include "gateway/sockets.h"

namespace mcastcoll::gateway {

class StreamRoom {
  public:
    // Asks the kernel how much is under way, unless it has just said so.
    void look(int socket, Nanoseconds now);
    // Gives the stream the buffers that it needs.
    void fit_buffers(int socket) const;
    void note_sent(std::size_t bytes) { queued_ += static_cast<std::int64_t>(bytes); }

    Nanoseconds looked() const { return looked_; }
    // What the congestion window has room for beyond what is under way and waits; at least, but for losses
    // since looked().
    std::int64_t left() const { return window_ - queued_; }
    // Bytes a second, a window in a round trip; 0: not known.
    std::uint64_t rate() const { return rate_; }
    // How much may wait in the kernel beyond the window.
    std::size_t most_unsent() const;
    const std::optional<tcp_info>& info() const { return info_; }

  private:
    std::optional<tcp_info> info_;
    Nanoseconds looked_{0};
    std::int64_t window_ = 0, queued_ = 0;
    std::uint64_t rate_ = 0;
};

}  // namespace mcastcoll::gateway
