#include "gateway/session/outbound.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::gateway::session {
namespace {

// Smaller credit is not worth a data frame: more follows when the receiver has consumed data.
constexpr std::uint64_t kMin = 512;
// Bytes of urgent frames sent before waiting bulk; then one bulk frame is sent.
constexpr std::size_t kUrgentInARow = 64 * 1024;

template <typename One>
One pop(std::deque<One>& queue) {
    One one = std::move(queue.front());
    queue.pop_front();
    return one;
}

}  // namespace

Outbound::Outbound(const Config& config, Channels& channels, Counters& counters)
    : config_(config), channels_(channels), counters_(counters), bucket_(config.cap_bytes_per_second) {}

std::size_t Outbound::may_send(ChannelId id) {
    Channel* channel = channels_.find(id);
    if (channel == nullptr || channel->finish_queued || channel->last_queued) return 0;
    if (channel->sent + cost_of(kMin) > channel->limit) {
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

void Outbound::send(Channel& channel, FramePointer frame) {
    assert(!channel.finish_queued && channel.sent + cost_of(frame->header.length) <= channel.limit);
    frame->header.type = FrameType::data;
    frame->header.channel = channel.id;
    channel.sent += cost_of(frame->header.length);
    counters_.sent_bytes += frame->header.length;
    enqueue(channel, std::move(frame));
}

void Outbound::enqueue(Channel& channel, FramePointer frame) {
    frame->header.order = channel.next_order++;
    held_ += frame->memory();
    // Behind bulk of its own channel a small frame could not be delivered early anyway.
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

void Outbound::enqueue_control(Channel& channel, FrameType type) {
    enqueue(channel, std::make_unique<Frame>(FrameHeader{.type = type, .channel = channel.id}));
}

void Outbound::enqueue_last(Channel& channel, FrameType type) {
    if (!std::exchange(channel.last_queued, true)) enqueue_control(channel, type);
}

void Outbound::check_over(Channel& channel) {
    if (channel.finish_queued && channel.finish_reported) enqueue_last(channel, FrameType::close);
    channels_.note_over(channel);
}

void Outbound::on_credit(const FrameHeader& header, Bytes payload) {
    Channel* channel = channels_.find(header.channel);
    if (channel == nullptr) return;  // finished channel
    const auto limit = wire::get<std::uint64_t>(payload.data());
    if (limit <= channel->limit) return;  // overtaken by a later credit
    channel->limit = limit;
    if (channel->wants_credit && !channel->is_sendable) {
        channel->is_sendable = true;
        sendable_.push_back(channel->id);
    }
    channel->wants_credit = false;
}

std::optional<ChannelId> Outbound::next_sendable() {
    for (;;) {
        const bool credit = !sendable_.empty();
        if (!credit && (wait_for_room_.empty() || !has_room())) return std::nullopt;
        const ChannelId id = pop(credit ? sendable_ : wait_for_room_);
        Channel* channel = channels_.find(id);
        if (channel == nullptr) continue;
        (credit ? channel->is_sendable : channel->wants_room) = false;
        return id;
    }
}

FramePointer Outbound::take(Nanoseconds now, FunctionRef<FramePointer()> take_credit) {
    if (!bucket_.may_send(now)) return nullptr;
    FramePointer frame;
    if (!again_.empty()) {
        frame = pop(again_);
    } else if (window_fits()) {
        frame = take_credit();
        if (frame != nullptr) held_ += frame->memory();
    }
    if (frame == nullptr) frame = take_queued();
    if (frame == nullptr) return nullptr;
    if (frame->header.sequence == 0) frame->header.sequence = next_sequence_++;
    ++counters_.sent_frames;
    bucket_.spend(static_cast<std::int64_t>(frame->bytes().size()));
    return frame;
}

FramePointer Outbound::take_queued() {
    // Returned frames have a sequence already.
    const bool fits = window_fits();
    const auto has = [fits](const std::deque<FramePointer>& queue) {
        return !queue.empty() && (fits || queue.front()->header.sequence != 0);
    };
    if (has(urgent_) && (!has(bulk_) || urgent_in_a_row_ < kUrgentInARow)) {
        FramePointer frame = pop(urgent_);
        urgent_in_a_row_ += kHeaderSize + frame->header.length;
        return frame;
    }
    if (!has(bulk_)) return nullptr;
    FramePointer frame = pop(bulk_);
    urgent_in_a_row_ = 0;
    bulk_bytes_ -= frame->header.length;
    if (Channel* channel = channels_.find(frame->header.channel); channel != nullptr) --channel->in_bulk;
    return frame;
}

void Outbound::put_back(FramePointer frame) {
    --counters_.sent_frames;
    bucket_.spend(-static_cast<std::int64_t>(frame->bytes().size()));
    if (!frame->bulk) {
        urgent_.push_front(std::move(frame));
        return;
    }
    bulk_bytes_ += frame->header.length;
    if (Channel* channel = channels_.find(frame->header.channel); channel != nullptr) ++channel->in_bulk;
    bulk_.push_front(std::move(frame));
}

void Outbound::lost(std::vector<FramePointer> frames) {
    counters_.resent_frames += frames.size();
    std::ranges::move(frames, std::back_inserter(again_));
    std::ranges::sort(again_, {}, [](const FramePointer& frame) { return frame->header.sequence; });
}

void Outbound::acknowledged(FramePointer frame) {
    acknowledged_.add(frame->header.sequence);
    held_ -= std::min(held_, frame->memory());
}

void Outbound::clear() {
    for (auto* queue : {&again_, &urgent_, &bulk_}) queue->clear();
    sendable_.clear();
    wait_for_room_.clear();
    held_ = bulk_bytes_ = urgent_in_a_row_ = 0;
    next_sequence_ = 1;
    acknowledged_ = SequenceWindow();
}

}  // namespace mcastcoll::gateway::session
