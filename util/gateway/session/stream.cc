#include "gateway/session/stream.h"

#include <algorithm>
#include <cassert>

namespace mcastcoll::gateway::session {
namespace {

// An acknowledgement is due at once after this many frames or bytes, else after ack_delay.
constexpr std::uint64_t kAckFrames = 64, kAckBytes = 256 * 1024;

}  // namespace

void Stream::come_up(Nanoseconds now) {
    up_ = true;
    sent_ = last_input_ = now;
}

std::vector<FramePointer> Stream::go_down() {
    std::vector<FramePointer> lost;
    for (auto* frames : {&unacked_, &writing_})
        for (FramePointer& frame : *frames)
            if (is_sequenced(frame->header.type)) lost.push_back(std::move(frame));
    *this = Stream();
    return lost;
}

FramePointer Stream::take_control(Nanoseconds now, Counters& counters) {
    FrameHeader header;
    if (ack_due_) {
        ack_due_ = false;
        ack_at_ = kNever;
        ack_sent_ = received_;
        ack_sent_bytes_ = received_bytes_;
        ++counters.acknowledgements;
        header = {.type = FrameType::ack, .sequence = received_};
    } else if (pong_due_) {
        pong_due_ = false;
        header = {.type = FrameType::pong, .sequence = pong_};
    } else if (ping_due_) {
        ping_due_ = false;
        ++counters.heartbeats;
        header = {.type = FrameType::ping, .sequence = static_cast<std::uint64_t>(now.value)};
    } else {
        return nullptr;
    }
    return std::make_unique<Frame>(header);
}

Frame* Stream::enqueue(FramePointer frame, Nanoseconds now) {
    if (is_sequenced(frame->header.type)) in_flight_ += frame->bytes().size();
    frame->seal();
    sent_ = now;
    ping_due_ = false;
    writing_.push_back(std::move(frame));
    return writing_.back().get();
}

void Stream::written(std::size_t frames) {
    assert(frames <= writing_.size());
    for (; frames > 0; --frames) {
        if (is_sequenced(writing_.front()->header.type)) unacked_.push_back(std::move(writing_.front()));
        writing_.pop_front();
    }
}

FramePointer Stream::take_back() {
    assert(!writing_.empty());
    if (!is_sequenced(writing_.back()->header.type)) return nullptr;
    FramePointer frame = std::move(writing_.back());
    writing_.pop_back();
    in_flight_ -= frame->bytes().size();
    return frame;
}

void Stream::on_sequenced(std::size_t bytes, Nanoseconds ack_delay, Nanoseconds now) {
    ++received_;
    received_bytes_ += bytes;
    if (received_ - ack_sent_ >= kAckFrames || received_bytes_ - ack_sent_bytes_ >= kAckBytes)
        ack_due_ = true;
    else if (ack_at_ == kNever)
        ack_at_ = now + ack_delay;
}

void Stream::on_ping(std::uint64_t number) {
    pong_ = number;
    pong_due_ = true;
}

void Stream::on_pong(Nanoseconds round_trip) {
    round_trip_ =
        round_trip_.value == 0 ? round_trip : Nanoseconds{(round_trip_.value * 7 + round_trip.value) / 8};
}

void Stream::on_time(Nanoseconds heartbeat, Nanoseconds now) {
    if (!up_) return;
    if (ack_at_ <= now) ack_due_ = true;
    if (sent_ + heartbeat <= now) ping_due_ = true;
}

Nanoseconds Stream::next_deadline(const Config& config) const {
    return up_ ? std::min({ack_at_, sent_ + config.heartbeat, last_input_ + config.silence}) : kNever;
}

}  // namespace mcastcoll::gateway::session
