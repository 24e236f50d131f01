// A channel: one connection as it crosses a trunk, and what a trunk must remember of it.  Both sides number
// the frames they send on it ("order"); the receiver puts them in order again, since they come over several
// streams.  It lives until each side has sent its last frame (reset or close) and got the other's, so that
// its number is never mistaken for another's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trunk/frame.h"

namespace mcastcoll::trunk {

// What the windows of all channels of a gateway may still take beyond their first, together.
struct WindowPool {
    std::size_t free;
};

// How much of a channel's data its receiver takes: what it has granted, and a window beyond what its owner
// has taken. A channel that uses its window up gets a larger one as long as there is memory. All in cost
// (trunk/frame.h).
class ReceiveWindow {
  public:
    ReceiveWindow(std::uint64_t first, WindowPool& pool) : granted_(first), window_(first), pool_(pool) {}
    ~ReceiveWindow() { pool_.free += from_pool_; }
    ReceiveWindow(const ReceiveWindow&) = delete;
    ReceiveWindow& operator=(const ReceiveWindow&) = delete;

    // Data has come. False: more than was granted.
    bool receive(std::uint64_t cost) {
        received_ += cost;
        return received_ <= granted_;
    }
    // The owner has taken a frame's payload.
    void consume(std::uint64_t cost) { consumed_ += cost; }
    // Grows if all of it was used since it last did.
    void follow(std::uint64_t most) {
        if (consumed_ - grown_at_ < window_) return;
        grown_at_ = consumed_;
        grow(window_ * 2, most);
    }
    void grow(std::uint64_t to, std::uint64_t most) {
        to = std::min(to, most);
        // Half of what is left at most: the next ones want some, too.
        if (to <= window_ || (to - window_) * 2 > pool_.free) return;
        const auto more = static_cast<std::size_t>(to - window_);
        pool_.free -= more;
        from_pool_ += more;
        window_ = to;
    }
    // Enough was taken to be worth a frame of credit.
    bool should_grant() const { return consumed_ + window_ >= granted_ + window_ / 2; }
    // Up to where data is taken from now on.
    std::uint64_t grant() { return granted_ = std::max(granted_, consumed_ + window_); }
    bool has_grown() const { return consumed_ + window_ > granted_; }

  private:
    std::uint64_t received_ = 0, consumed_ = 0, granted_, window_, grown_at_ = 0;
    WindowPool& pool_;
    std::size_t from_pool_ = 0;
};

struct Channel {
    struct Held {
        FrameType type = FrameType::data;
        std::vector<std::byte> payload;
    };

    // limit: what the peer takes before credit; window: what this side takes.
    Channel(ChannelId number, bool is_ours, std::uint64_t peer_limit, std::uint64_t first_window,
            WindowPool& pool)
        : id(number), ours(is_ours), limit(peer_limit), window(first_window, pool) {}

    const ChannelId id;
    const bool ours;     // we opened it
    bool known = false;  // to the host

    // Sending.
    std::uint32_t next_order = 0;
    std::uint64_t sent = 0, limit;  // in cost
    unsigned in_bulk = 0;           // frames in the queue of bulk: smaller ones must not count as urgent
    bool finish_queued = false, last_queued = false;
    bool wants_credit = false, wants_room = false, is_sendable = false;

    // Receiving.
    std::uint64_t expected = 0;
    std::map<std::uint64_t, Held> early;
    std::deque<std::vector<std::byte>> inbox;  // in order, but nobody has taken it yet
    std::size_t taken_of_first = 0;
    ReceiveWindow window;
    bool credit_due = false, finish_received = false, finish_told = false, last_received = false;
    bool discarding = false;  // the owner has dropped it: what still comes is for nobody

    bool over() const { return last_queued && last_received; }
};

// The channels of a trunk, by number. Those that are over stay until nobody can be using them.
class Channels {
  public:
    using Map = std::unordered_map<ChannelId, std::unique_ptr<Channel>>;

    // Ours have even numbers or odd ones.
    Channels(bool even, WindowPool& pool) : next_(even ? 2 : 1), pool_(pool) {}

    Channel* find(ChannelId id) const {
        const auto found = all_.find(id);
        return found == all_.end() ? nullptr : found->second.get();
    }
    // limit: what the peer takes; window: what this side takes.
    Channel& create(ChannelId id, bool ours, std::uint64_t limit, std::uint64_t window) {
        return *all_.emplace(id, std::make_unique<Channel>(id, ours, limit, window, pool_)).first->second;
    }
    // A free number of ours.
    ChannelId new_id() {
        while (all_.count(next_) != 0 || next_ == 0) next_ += 2;
        const ChannelId id = next_;
        next_ += 2;
        return id;
    }
    void note_over(const Channel& channel) {
        if (channel.over()) over_.push_back(channel.id);
    }
    void bury() {
        for (const ChannelId id : over_) all_.erase(id);
        over_.clear();
    }
    Map take_all() { return std::exchange(all_, {}); }
    std::size_t size() const { return all_.size(); }

  private:
    Map all_;
    std::vector<ChannelId> over_;
    ChannelId next_;
    WindowPool& pool_;
};

}  // namespace mcastcoll::trunk
