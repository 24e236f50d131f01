// What goes out of a trunk: which frame is next, and what becomes of it. Small frames go ahead of bulk, so
// long as bulk has its turn; what a broken stream has lost goes first. Channels that had no credit, or for
// which there was no room, are handed out when they may send again.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>

#include "base/function_ref.h"
#include "trunk/channel.h"
#include "trunk/config.h"

namespace mcastcoll::trunk {

// The cap of a trunk: so many bytes per second, and a burst of ten milliseconds' worth.  It may be overdrawn
// by one frame, and says when it is in credit again.
class TokenBucket {
  public:
    // 0 bytes per second: no cap.
    explicit TokenBucket(std::uint64_t bytes_per_second = 0)
        : rate_(static_cast<std::int64_t>(bytes_per_second)),
          burst_(std::max<std::int64_t>(rate_ / 100, 16 * 1024)),
          tokens_(burst_) {}

    bool may_send(Nanoseconds now) {
        if (rate_ == 0) return true;
        fill(now);
        return tokens_ > 0;
    }
    // Less than none: they are given back.
    void spend(std::int64_t bytes) {
        if (rate_ != 0) tokens_ -= bytes;
    }
    // kNever if it is now.
    Nanoseconds in_credit_at() const {
        if (rate_ == 0 || tokens_ > 0) return kNever;
        return filled_ + Nanoseconds{(1 - tokens_) * kSecond / rate_ + 1};
    }

  private:
    static constexpr std::int64_t kSecond = 1'000'000'000;
    void fill(Nanoseconds now) {
        const std::int64_t most = (burst_ - tokens_) * kSecond / rate_ + 1;
        const std::int64_t passed = std::clamp<std::int64_t>((now - filled_).value, 0, most);
        const std::int64_t tokens = passed * rate_ / kSecond;
        if (tokens == 0) return;
        tokens_ = std::min(burst_, tokens_ + tokens);
        filled_ = now;
    }

    std::int64_t rate_, burst_, tokens_;
    Nanoseconds filled_{0};
};

class Outbound {
  public:
    Outbound(const Config& config, Channels& channels, Counters& counters);

    // How many bytes a frame of data may have now; if none, the channel comes out of next_sendable() later.
    std::size_t may_send(ChannelId channel);
    void send(Channel& channel, FramePointer frame);
    // Any frame that has an order in its channel.
    void enqueue(Channel& channel, FramePointer frame);
    // One without a payload; its last, unless it has one already.
    void enqueue_word(Channel& channel, FrameType type);
    void enqueue_last(Channel& channel, FrameType type);
    // Both halves are done with: says so, and lets the channel go once the peer has said it, too.
    void check_over(Channel& channel);
    std::optional<ChannelId> next_sendable();
    // The peer takes more.
    void on_credit(const FrameHeader& header, Bytes payload);

    // The next frame with a sequence, or null. Credit that is due is asked for in its turn.
    FramePointer take(Nanoseconds now, FunctionRef<FramePointer()> take_credit);
    // It was not written after all: before all others of its kind, as it was.
    void put_back(FramePointer frame);
    // Their stream is gone.
    void lost(std::vector<FramePointer> frames);
    void acknowledged(FramePointer frame);
    // The session is gone.
    void clear();

    bool waits() const { return !again_.empty() || !urgent_.empty() || !bulk_.empty(); }
    // When what waits may leave.
    Nanoseconds in_credit_at() const { return bucket_.in_credit_at(); }
    // Whether more than small frames wait.
    bool bulk_waits() const { return !bulk_.empty() || !again_.empty(); }
    std::size_t bulk_bytes() const { return bulk_bytes_; }
    std::size_t memory_held() const { return held_; }
    std::size_t queued_frames() const { return again_.size() + urgent_.size() + bulk_.size(); }

  private:
    bool has_room() const { return held_ < config_.send_memory && bulk_bytes_ < config_.bulk_queue; }
    bool window_fits() const { return acknowledged_.fits(next_sequence_); }
    FramePointer take_queued();

    const Config& config_;
    Channels& channels_;
    Counters& counters_;
    std::deque<FramePointer> again_, urgent_, bulk_;
    std::deque<ChannelId> sendable_, wait_for_room_;
    std::size_t held_ = 0, bulk_bytes_ = 0, urgent_in_a_row_ = 0;
    std::uint64_t next_sequence_ = 1;
    SequenceWindow acknowledged_;
    TokenBucket bucket_;
};

}  // namespace mcastcoll::trunk
