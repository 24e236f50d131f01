// What goes out of a trunk: which frame is next, and what becomes of it.
#include <algorithm>
#include <cassert>

#include "trunk/trunk.h"
#include "wire/bytes.h"

namespace mcastcoll::trunk {
namespace {

// Less credit than this is not worth a frame: more comes when the receiver has taken what it got.
constexpr std::uint64_t kLeast = 512;
// So many bytes of urgent frames go ahead of bulk that waits, then it is bulk's turn once.
constexpr std::size_t kUrgentInARow = 64 * 1024;

}  // namespace

std::size_t Trunk::may_send(ChannelId id) {
    Channel* channel = find(id);
    if (channel == nullptr || channel->finish_queued || channel->last_queued) return 0;
    if (channel->sent + cost_of(kLeast) > channel->limit) {
        channel->wants_credit = true;
        return 0;
    }
    if (!has_room()) {
        if (!channel->wants_room) wait_for_room_.push_back(id);
        channel->wants_room = true;
        return 0;
    }
    return std::min<std::size_t>(kMaxPayload, channel->limit - channel->sent - kHeaderSize);
}

void Trunk::send(ChannelId id, FramePointer frame) {
    Channel* channel = find(id);
    if (channel == nullptr) return;
    assert(!channel->finish_queued && channel->sent + cost_of(frame->header.length) <= channel->limit);
    const Entry entry(*this);
    frame->header.type = FrameType::data;
    frame->header.channel = id;
    channel->sent += cost_of(frame->header.length);
    counters_.sent_bytes += frame->header.length;
    enqueue(*channel, std::move(frame));
}

void Trunk::enqueue(Channel& channel, FramePointer frame) {
    frame->header.order = channel.next_order++;
    held_ += frame->memory();
    // Behind its own channel's bulk it could not be delivered anyway.
    if (frame->header.length <= kUrgent && channel.in_bulk == 0) {
        ++counters_.urgent_frames;
        urgent_.push_back(std::move(frame));
        return;
    }
    frame->bulk = true;
    ++channel.in_bulk;
    bulk_bytes_ += frame->header.length;
    bulk_.push_back(std::move(frame));
}

void Trunk::enqueue_last(Channel& channel, FrameType type) {
    if (channel.last_queued) return;
    channel.last_queued = true;
    auto frame = std::make_unique<Frame>(0);
    frame->header = {type, 0, channel.id, 0, 0};
    enqueue(channel, std::move(frame));
}

void Trunk::forget(FramePointer frame) {
    held_ -= std::min(held_, frame->memory());
}

std::optional<ChannelId> Trunk::next_sendable() {
    while (!sendable_.empty()) {
        const ChannelId id = sendable_.front();
        sendable_.pop_front();
        Channel* channel = find(id);
        if (channel == nullptr) continue;
        channel->is_sendable = false;
        return id;
    }
    while (!wait_for_room_.empty() && has_room()) {
        const ChannelId id = wait_for_room_.front();
        wait_for_room_.pop_front();
        Channel* channel = find(id);
        if (channel == nullptr) continue;
        channel->wants_room = false;
        return id;
    }
    return std::nullopt;
}

FramePointer Trunk::take_control(Stream& stream, Nanoseconds now) {
    FrameHeader header;
    if (stream.ack_due) {
        stream.ack_due = false;
        stream.ack_at = kNever;
        stream.ack_sent = stream.received;
        stream.ack_sent_bytes = stream.received_bytes;
        ++counters_.acks;
        header = {FrameType::ack, 0, 0, 0, stream.received};
    } else if (stream.pong_due) {
        stream.pong_due = false;
        header = {FrameType::pong, 0, 0, 0, stream.pong};
    } else if (stream.ping_due) {
        stream.ping_due = false;
        ++counters_.heartbeats;
        header = {FrameType::ping, 0, 0, 0, static_cast<std::uint64_t>(now.value)};
    } else {
        return nullptr;
    }
    auto frame = std::make_unique<Frame>(0);
    frame->header = header;
    return frame;
}

FramePointer Trunk::take_credit() {
    while (!credits_.empty()) {
        Channel* channel = find(credits_.front());
        credits_.pop_front();
        if (channel == nullptr || !channel->credit_due) continue;
        channel->credit_due = false;
        channel->granted = std::max(channel->granted, channel->consumed + channel->window);
        auto frame = std::make_unique<Frame>(kCreditSize);
        frame->header = {FrameType::credit, kCreditSize, channel->id, 0, 0};
        wire::put(frame->space().data(), channel->granted);
        held_ += frame->memory();
        return frame;
    }
    return nullptr;
}

FramePointer Trunk::take_sequenced(Nanoseconds now) {
    if (!sequenced_waits() || !bucket_.may_send(now)) return nullptr;
    const auto take = [](std::deque<FramePointer>& queue) {
        FramePointer frame = std::move(queue.front());
        queue.pop_front();
        return frame;
    };
    if (!again_.empty()) return take(again_);
    // Those that were given back have their numbers already.
    const bool fits = acknowledged_.fits(next_sequence_);
    const auto has = [fits](const std::deque<FramePointer>& queue) {
        return !queue.empty() && (fits || queue.front()->header.sequence != 0);
    };
    FramePointer frame = fits ? take_credit() : nullptr;
    if (frame == nullptr && has(urgent_) && (!has(bulk_) || urgent_in_a_row_ < kUrgentInARow)) {
        frame = take(urgent_);
        urgent_in_a_row_ += kHeaderSize + frame->header.length;
    } else if (frame == nullptr && has(bulk_)) {
        frame = take(bulk_);
        urgent_in_a_row_ = 0;
        bulk_bytes_ -= frame->header.length;
        if (Channel* channel = find(frame->header.channel); channel != nullptr) --channel->in_bulk;
    }
    if (frame != nullptr && frame->header.sequence == 0) frame->header.sequence = next_sequence_++;
    return frame;
}

Frame* Trunk::next(unsigned index, Nanoseconds now) {
    Stream& stream = streams_[index];
    if (!stream.up) return nullptr;
    FramePointer frame = take_control(stream, now);
    if (frame == nullptr) {
        frame = take_sequenced(now);
        if (frame == nullptr) return nullptr;
        ++counters_.sent_frames;
        bucket_.spend(frame->bytes().size());
        stream.in_flight += frame->bytes().size();
    }
    frame->seal();
    stream.sent = now;
    stream.ping_due = false;
    stream.writing.push_back(std::move(frame));
    return stream.writing.back().get();
}

void Trunk::written(unsigned index, std::size_t frames) {
    Stream& stream = streams_[index];
    assert(frames <= stream.writing.size());
    for (; frames > 0; --frames) {
        if (is_sequenced(stream.writing.front()->header.type))
            stream.unacked.push_back(std::move(stream.writing.front()));
        stream.writing.pop_front();
    }
}

std::size_t Trunk::give_back(unsigned index, std::size_t frames) {
    Stream& stream = streams_[index];
    assert(frames <= stream.writing.size());
    std::size_t given = 0;
    for (; given < frames && is_sequenced(stream.writing.back()->header.type); ++given) {
        FramePointer frame = std::move(stream.writing.back());
        stream.writing.pop_back();
        const std::size_t size = frame->bytes().size();
        stream.in_flight -= size;
        bucket_.give_back(size);
        --counters_.sent_frames;
        put_back(std::move(frame));
    }
    return given;
}

// Before all others of its kind, as it was.
void Trunk::put_back(FramePointer frame) {
    if (!frame->bulk) {
        urgent_.push_front(std::move(frame));
        return;
    }
    bulk_bytes_ += frame->header.length;
    if (Channel* channel = find(frame->header.channel); channel != nullptr) ++channel->in_bulk;
    bulk_.push_front(std::move(frame));
}

}  // namespace mcastcoll::trunk
