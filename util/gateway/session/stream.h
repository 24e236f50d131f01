// One stream of a gateway session, a TCP connection between two gateways: frames being written,
// unacknowledged frames, due acknowledgements and heartbeats, and the measured round trip.
#pragma once

#include <deque>
#include <vector>

#include "gateway/session/config.h"
#include "gateway/session/frame.h"

namespace mcastcoll::gateway::session {

class Stream {
  public:
    bool is_up() const { return up_; }
    void come_up(Nanoseconds now);
    // Returns the frames with a sequence that may not have arrived.
    std::vector<FramePointer> go_down();

    // Whether an acknowledgement or heartbeat is due. It goes before other frames.
    bool has_control() const { return up_ && (ack_due_ || ping_due_ || pong_due_); }
    // Returns the due acknowledgement or heartbeat, or null.
    FramePointer take_control(Nanoseconds now, Counters& counters);
    // Appends the next frame to write.
    Frame* enqueue(FramePointer frame, Nanoseconds now);
    void written(std::size_t frames);
    const std::deque<FramePointer>& writing() const { return writing_; }
    // Removes and returns the last frame of writing(); null if it is an acknowledgement or heartbeat.
    FramePointer take_back();

    // The peer has received this number of frames. Returns false if fewer were sent.
    template <typename Acknowledged>
    bool acknowledge(std::uint64_t count, Acknowledged acknowledged) {
        if (count < acked_ || count - acked_ > unacked_.size()) return false;
        for (; acked_ < count; ++acked_) {
            FramePointer frame = std::move(unacked_.front());
            unacked_.pop_front();
            in_flight_ -= frame->bytes().size();
            acknowledged(std::move(frame));
        }
        return true;
    }
    // Counts a received frame with a sequence, to be acknowledged now or after ack_delay.
    void on_sequenced(std::size_t bytes, Nanoseconds ack_delay, Nanoseconds now);
    void on_ping(std::uint64_t number);
    void on_pong(Nanoseconds round_trip);

    // Any frame arrived.
    void note_input(Nanoseconds now) { last_input_ = now; }
    void on_time(Nanoseconds heartbeat, Nanoseconds now);
    Nanoseconds next_deadline(const Config& config) const;
    bool is_silent(Nanoseconds silence, Nanoseconds now) const { return up_ && last_input_ + silence <= now; }

    // Unacknowledged bytes given to the stream.
    std::size_t in_flight() const { return in_flight_; }
    // Smoothed round trip of heartbeats; 0: unknown.
    Nanoseconds round_trip() const { return round_trip_; }

  private:
    bool up_ = false;
    std::deque<FramePointer> writing_, unacked_;
    std::size_t in_flight_ = 0;
    std::uint64_t acked_ = 0;
    std::uint64_t received_ = 0, received_bytes_ = 0, ack_sent_ = 0, ack_sent_bytes_ = 0;
    Nanoseconds ack_at_ = kNever, sent_{0}, last_input_{0}, round_trip_{0};
    bool ack_due_ = false, ping_due_ = false, pong_due_ = false;
    std::uint64_t pong_ = 0;
};

}  // namespace mcastcoll::gateway::session
