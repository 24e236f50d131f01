// Flow control of one channel at its receiver: the data granted so far, and a window beyond the consumed
// data. A window that is used up grows as long as there is memory. All values are in cost units
// (session/frame.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mcastcoll::gateway::session {

// Memory left for enlarging the windows of a gateway's channels.
struct WindowPool {
    std::size_t free;
};

class ReceiveWindow {
  public:
    ReceiveWindow(std::uint64_t first, WindowPool& pool) : granted_(first), window_(first), pool_(pool) {}
    ~ReceiveWindow() { pool_.free += from_pool_; }
    ReceiveWindow(const ReceiveWindow&) = delete;
    ReceiveWindow& operator=(const ReceiveWindow&) = delete;

    // Counts received data. Returns false if the sender exceeded its credit.
    bool receive(std::uint64_t cost) {
        received_ += cost;
        return received_ <= granted_;
    }
    // The owner has consumed a frame's payload.
    void consume(std::uint64_t cost) { consumed_ += cost; }
    // Grows the window if a full window was consumed since the last growth.
    void follow(std::uint64_t max) {
        if (consumed_ - grown_at_ < window_) return;
        grown_at_ = consumed_;
        grow(window_ * 2, max);
    }
    void grow(std::uint64_t to, std::uint64_t max) {
        to = std::min(to, max);
        // Takes at most half of the free memory, so that later channels can grow, too.
        if (to <= window_ || (to - window_) * 2 > pool_.free) return;
        const auto more = static_cast<std::size_t>(to - window_);
        pool_.free -= more;
        from_pool_ += more;
        window_ = to;
    }
    // Whether enough data was consumed to be worth a credit frame.
    bool should_grant() const { return consumed_ + window_ >= granted_ + window_ / 2; }
    // Raises the limit up to which data is accepted, and returns it.
    std::uint64_t grant() { return granted_ = std::max(granted_, consumed_ + window_); }
    bool has_grown() const { return consumed_ + window_ > granted_; }

  private:
    std::uint64_t received_ = 0, consumed_ = 0, granted_, window_, grown_at_ = 0;
    WindowPool& pool_;
    std::size_t from_pool_ = 0;
};

}  // namespace mcastcoll::gateway::session
