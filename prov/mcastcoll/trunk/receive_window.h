// How much of a channel's data its receiver takes: what it has granted, and a window beyond what its owner
// has taken. A channel that uses its window up gets a larger one as long as there is memory. All in cost
// (trunk/frame.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mcastcoll::trunk {

// What the windows of all channels of a gateway may take beyond their first, together.
class WindowPool {
  public:
    explicit WindowPool(std::size_t total) : free_(total) {}
    bool take(std::size_t size) {
        if (size > free_) return false;
        free_ -= size;
        return true;
    }
    void give_back(std::size_t size) { free_ += size; }
    std::size_t free() const { return free_; }

  private:
    std::size_t free_;
};

class ReceiveWindow {
  public:
    explicit ReceiveWindow(std::uint64_t first) : granted_(first), window_(first) {}

    std::uint64_t granted() const { return granted_; }
    // Data has come. False: more than was granted.
    bool receive(std::uint64_t cost) {
        received_ += cost;
        return received_ <= granted_;
    }
    // The owner has taken a frame's payload.
    void consume(std::uint64_t cost) { consumed_ += cost; }
    // Grows if all of it was used since it last did.
    void follow(std::uint64_t most, WindowPool& pool) {
        if (consumed_ - grown_at_ < window_) return;
        grown_at_ = consumed_;
        grow(window_ * 2, most, pool);
    }
    void grow(std::uint64_t to, std::uint64_t most, WindowPool& pool) {
        to = std::min(to, most);
        // Half of what is left at most: the next ones want some, too.
        if (to <= window_ || (to - window_) * 2 > pool.free()) return;
        const auto more = static_cast<std::size_t>(to - window_);
        if (!pool.take(more)) return;
        from_pool_ += more;
        window_ = to;
    }
    // Enough was taken to be worth a frame of credit.
    bool should_grant() const { return consumed_ + window_ >= granted_ + window_ / 2; }
    // Up to where data is taken from now on.
    std::uint64_t grant() { return granted_ = std::max(granted_, consumed_ + window_); }
    bool has_grown() const { return consumed_ + window_ > granted_; }
    void give_back(WindowPool& pool) {
        pool.give_back(from_pool_);
        from_pool_ = 0;
    }

  private:
    std::uint64_t received_ = 0, consumed_ = 0, granted_, window_, grown_at_ = 0;
    std::size_t from_pool_ = 0;
};

}  // namespace mcastcoll::trunk
