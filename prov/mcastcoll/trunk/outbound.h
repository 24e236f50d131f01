// What goes out of a trunk: which frame is next, and what becomes of it. Small frames go ahead of bulk, so
// long as bulk has its turn; what a broken stream has lost goes first. Channels that had no credit, or for
// which there was no room, are handed out when they may send again.
#pragma once

#include <deque>
#include <optional>

#include "trunk/channels.h"
#include "trunk/config.h"
#include "trunk/sequence_window.h"
#include "trunk/token_bucket.h"

namespace mcastcoll::trunk {

class Outbound {
  public:
    Outbound(const Config& config, Channels& channels, Counters& counters);

    // How many bytes a frame of data may have now; if none, the channel comes out of next_sendable() later.
    std::size_t may_send(ChannelId channel);
    void send(Channel& channel, FramePointer frame);
    // Any frame that has an order in its channel.
    void enqueue(Channel& channel, FramePointer frame);
    void enqueue_last(Channel& channel, FrameType type);
    // Both halves are done with: says so, and lets the channel go once the peer has said it, too.
    void check_over(Channel& channel);
    std::optional<ChannelId> next_sendable();
    // The peer takes more.
    void on_credit(const FrameHeader& header, Bytes payload);

    // The next frame with a sequence, or null. Credit that is due is asked for in its turn.
    template <typename TakeCredit>
    FramePointer take(Nanoseconds now, TakeCredit take_credit) {
        if (!bucket_.may_send(now)) return nullptr;
        FramePointer frame = take_again();
        if (frame == nullptr && window_fits()) {
            frame = take_credit();
            if (frame != nullptr) held_ += frame->memory();
        }
        if (frame == nullptr) frame = take_queued();
        if (frame != nullptr) note_sent(*frame);
        return frame;
    }
    // It was not written after all: before all others of its kind, as it was.
    void put_back(FramePointer frame);
    // Its stream is gone; after some of them, sort_again().
    void lost(FramePointer frame);
    void sort_again();
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
    FramePointer take_again();
    FramePointer take_queued();
    void note_sent(Frame& frame);

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
