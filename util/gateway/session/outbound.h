// Outgoing side of a gateway session: chooses the next frame and tracks frames until they are acknowledged.
// Small frames overtake bulk, but bulk gets its turn; frames of a broken stream go first. Channels without
// credit or memory are reported when sending is possible again.
#pragma once

#include <deque>
#include <optional>

#include "base/function_ref.h"
#include "gateway/session/channel.h"
#include "gateway/session/channels.h"
#include "gateway/session/config.h"
#include "gateway/session/sequence_window.h"
#include "gateway/session/token_bucket.h"

namespace mcastcoll::gateway::session {

class Outbound {
  public:
    Outbound(const Config& config, Channels& channels, Counters& counters);

    // Number of bytes that a data frame may have now. If 0, next_sendable() returns the channel later.
    std::size_t may_send(ChannelId channel);
    void send(Channel& channel, FramePointer frame);
    // Queues a frame that must keep its order in the channel.
    void enqueue(Channel& channel, FramePointer frame);
    // Queues a frame without payload.
    void enqueue_control(Channel& channel, FrameType type);
    // Queues the channel's last frame, reset or close, unless one was queued before.
    void enqueue_last(Channel& channel, FrameType type);
    // Queues close when both halves are finished, and releases the channel once the peer has sent its last
    // frame, too.
    void check_over(Channel& channel);
    std::optional<ChannelId> next_sendable();
    // Raises the limit of a channel: the peer accepts more data.
    void on_credit(const FrameHeader& header, Bytes payload);

    // Returns the next frame with a sequence, or null. Calls take_credit for a credit frame when its turn
    // comes.
    FramePointer take(Nanoseconds now, FunctionRef<FramePointer()> take_credit);
    // Returns an unwritten frame, with its sequence, to the head of its queue.
    void put_back(FramePointer frame);
    // Queues the unacknowledged frames of a broken stream again.
    void lost(std::vector<FramePointer> frames);
    void acknowledged(FramePointer frame);
    // Drops all frames when the session has ended.
    void clear();

    bool waits() const { return !again_.empty() || !urgent_.empty() || !bulk_.empty(); }
    // When the rate limit allows the next frame; kNever if it allows one now.
    Nanoseconds in_credit_at() const { return bucket_.in_credit_at(); }
    // Whether bulk or frames of a broken stream wait.
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

}  // namespace mcastcoll::gateway::session
