// One stream of a trunk, a TCP connection between two gateways: what is being written on it and what is not
// acknowledged, the acknowledgements and heartbeats that it owes, and its round trip.
#pragma once

#include <deque>
#include <vector>

#include "trunk/config.h"

namespace mcastcoll::trunk {

class Stream {
  public:
    bool is_up() const { return up_; }
    void come_up(Nanoseconds now);
    // The frames that have a sequence and may not have arrived.
    std::vector<FramePointer> go_down();

    // Whether it has something to say of its own, which goes first.
    bool has_control() const { return up_ && (ack_due_ || ping_due_ || pong_due_); }
    // That, or null.
    FramePointer take_control(Nanoseconds now, Counters& counters);
    // What is written next.
    Frame* enqueue(FramePointer frame, Nanoseconds now);
    void written(std::size_t frames);
    const std::deque<FramePointer>& writing() const { return writing_; }
    // The last that is to be written; null if it is the stream's own.
    FramePointer take_back();

    // So many frames have come there. False: more than were sent.
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
    // A frame with a sequence has come: it is acknowledged now or soon.
    void on_sequenced(std::size_t bytes, Nanoseconds ack_delay, Nanoseconds now);
    void on_ping(std::uint64_t number);
    void on_pong(Nanoseconds round_trip);

    // Anything came.
    void heard(Nanoseconds now) { heard_ = now; }
    void on_time(Nanoseconds heartbeat, Nanoseconds now);
    Nanoseconds next_deadline(const Config& config) const;
    bool is_silent(Nanoseconds silence, Nanoseconds now) const { return up_ && heard_ + silence <= now; }

    // Bytes that were handed to the stream and are not acknowledged.
    std::size_t in_flight() const { return in_flight_; }
    // Smoothed, of heartbeats; 0: not known.
    Nanoseconds round_trip() const { return round_trip_; }

  private:
    bool up_ = false;
    std::deque<FramePointer> writing_, unacked_;
    std::size_t in_flight_ = 0;
    std::uint64_t acked_ = 0;
    std::uint64_t received_ = 0, received_bytes_ = 0, ack_sent_ = 0, ack_sent_bytes_ = 0;
    Nanoseconds ack_at_ = kNever, sent_{0}, heard_{0}, round_trip_{0};
    bool ack_due_ = false, ping_due_ = false, pong_due_ = false;
    std::uint64_t pong_ = 0;
};

}  // namespace mcastcoll::trunk
