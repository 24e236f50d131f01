// The state of a channel: a connection carried by a gateway session (`Session`). The sender numbers the
// frames of a channel ("order"), and the receiver restores the order, because frames arrive over several
// streams. A channel exists until each side has sent its last frame (reset or close) and received the peer's,
// so that a number is never reused too early.
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

#include "gateway/session/frame.h"

namespace mcastcoll::gateway::session {

// Memory left for enlarging the windows of a gateway's channels.
struct WindowPool {
    std::size_t free;
};

// Flow control of one channel at its receiver: the data granted so far, and a window beyond the consumed
// data. A window that is used up grows as long as there is memory. All values are in cost units
// (session/frame.h).
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
    // Enough data was consumed to be worth a credit frame.
    bool should_grant() const { return consumed_ + window_ >= granted_ + window_ / 2; }
    // Raises the limit up to which data is accepted, and returns it.
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

    // limit: cost accepted by the peer before any credit; window: cost accepted by this side.
    Channel(ChannelId number, bool is_opened_here, std::uint64_t peer_limit, std::uint64_t first_window,
            WindowPool& pool)
        : id(number), opened_here(is_opened_here), limit(peer_limit), window(first_window, pool) {}

    const ChannelId id;
    const bool opened_here;  // opened by this side
    bool known = false;      // the host was informed of the channel

    // Sending.
    std::uint32_t next_order = 0;
    std::uint64_t sent = 0, limit;  // in cost
    unsigned in_bulk = 0;           // frames in the bulk queue: smaller ones must wait behind them
    bool finish_queued = false, last_queued = false;
    bool wants_credit = false, wants_room = false, is_sendable = false;

    // Receiving.
    std::uint64_t expected = 0;
    std::map<std::uint64_t, Held> early;
    std::deque<std::vector<std::byte>> inbox;  // in order, not yet taken by the owner
    std::size_t taken_of_first = 0;
    ReceiveWindow window;
    bool credit_due = false, finish_received = false, finish_reported = false, last_received = false;
    bool discarding = false;  // dropped by the owner: further data is discarded

    bool over() const { return last_queued && last_received; }
};

// The channels of a gateway session, by number. Finished channels stay until remove_finished(), which is
// called when no caller holds a reference.
class Channels {
  public:
    using Map = std::unordered_map<ChannelId, std::unique_ptr<Channel>>;

    // even: this side's numbers are even, otherwise odd.
    Channels(bool even, WindowPool& pool) : next_(even ? 2 : 1), pool_(pool) {}

    Channel* find(ChannelId id) const {
        const auto found = all_.find(id);
        return found == all_.end() ? nullptr : found->second.get();
    }
    // limit: cost accepted by the peer; window: cost accepted by this side.
    Channel& create(ChannelId id, bool opened_here, std::uint64_t limit, std::uint64_t window) {
        return *all_.emplace(id, std::make_unique<Channel>(id, opened_here, limit, window, pool_))
                    .first->second;
    }
    // Returns a free number of this side.
    ChannelId new_id() {
        while (all_.count(next_) != 0 || next_ == 0) next_ += 2;
        const ChannelId id = next_;
        next_ += 2;
        return id;
    }
    void note_over(const Channel& channel) {
        if (channel.over()) over_.push_back(channel.id);
    }
    void remove_finished() {
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

}  // namespace mcastcoll::gateway::session
