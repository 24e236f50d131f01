#include "gateway/session/session.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::gateway::session {

Session::Session(const Config& config, WindowPool& pool, Host& host)
    : config_(config), host_(host), channels_(config.even, pool), outbound_(config_, channels_, counters_) {
    assert(config.first_window >= kMinWindow && config.max_window >= config.first_window);
}

void Session::stream_up(unsigned index, Nanoseconds now) {
    assert(index < kMaxStreams && !streams_[index].is_up());
    streams_[index].come_up(now);
    ++counters_.streams_up;
}

void Session::stream_down(unsigned index) {
    if (!streams_[index].is_up()) return;
    ++counters_.streams_lost;
    outbound_.lost(streams_[index].go_down());
}

unsigned Session::streams_up() const {
    return static_cast<unsigned>(
        std::ranges::count_if(streams_, [](const Stream& stream) { return stream.is_up(); }));
}

void Session::abandon() {
    channels_.remove_finished();
    for (unsigned i = 0; i < kMaxStreams; ++i) stream_down(i);
    outbound_.clear();
    credits_.clear();
    inbox_bytes_ = 0;
    received_ = SequenceWindow();
    peer_window_ = kMinWindow;  // set anew for the next session
    ++counters_.sessions_lost;
    // The host may call back for channels already removed, or open new channels.
    for (auto& [id, channel] : channels_.take_all()) {
        // The host was not informed of a channel whose open frame is missing.
        const bool report = !channel->discarding && channel->known;
        channel.reset();
        if (report) host_.was_reset(id);
    }
}

std::optional<ChannelId> Session::open_channel(Bytes preface) {
    assert(preface.size() + 4 <= kMaxPayload);
    if (channels_.size() >= config_.max_channels) return std::nullopt;
    Channel& channel = channels_.create(channels_.new_id(), true, peer_window_, config_.first_window);
    channel.known = true;
    channel.window.grow(config_.opened_window, config_.max_window);
    auto frame = std::make_unique<Frame>(preface.size() + 4);
    frame->header = {FrameType::open, static_cast<std::uint32_t>(preface.size() + 4), channel.id, 0, 0};
    wire::put(frame->space().data(), static_cast<std::uint32_t>(channel.window.grant()));
    std::copy(preface.begin(), preface.end(), frame->space().begin() + 4);
    ++counters_.opened;
    outbound_.enqueue(channel, std::move(frame));
    return channel.id;
}

void Session::send(ChannelId id, FramePointer frame) {
    if (Channel* const channel = channels_.find(id)) outbound_.send(*channel, std::move(frame));
}

void Session::finish(ChannelId id) {
    Channel* channel = channels_.find(id);
    if (channel == nullptr || channel->finish_queued || channel->last_queued) return;
    channel->finish_queued = true;
    outbound_.enqueue_control(*channel, FrameType::finish);
    outbound_.check_over(*channel);
}

void Session::reset(ChannelId id) {
    Channel* channel = channels_.find(id);
    if (channel == nullptr || channel->discarding) return;
    discard(*channel);
    ++counters_.resets;
    outbound_.enqueue_last(*channel, FrameType::reset);
    outbound_.check_over(*channel);
}

Frame* Session::next(unsigned index, Nanoseconds now) {
    Stream& stream = streams_[index];
    if (!stream.is_up()) return nullptr;
    FramePointer frame = stream.take_control(now, counters_);
    if (frame == nullptr) frame = outbound_.take(now, [this] { return take_credit(); });
    return frame == nullptr ? nullptr : stream.enqueue(std::move(frame), now);
}

void Session::give_back(unsigned index, std::size_t frames) {
    for (; frames > 0; --frames) {
        FramePointer frame = streams_[index].take_back();
        if (frame == nullptr) return;
        outbound_.put_back(std::move(frame));
    }
}

Result<void> Session::on_frame(unsigned index, const FrameHeader& header, Bytes payload, Nanoseconds now) {
    Stream& stream = streams_[index];
    assert(payload.size() == header.length);
    if (!stream.is_up()) return {};
    channels_.remove_finished();
    if (is_sequenced(header.type)) {
        stream.on_sequenced(kHeaderSize + header.length, config_.ack_delay, now);
        return on_sequenced(header, payload);
    }
    if (header.type == FrameType::welcome) return violation("a second welcome");
    if (header.type == FrameType::ack) {
        if (!stream.acknowledge(header.sequence,
                                [this](FramePointer frame) { outbound_.acknowledged(std::move(frame)); }))
            return violation("an acknowledgement of frames that were not sent");
    } else if (header.type == FrameType::ping) {
        stream.on_ping(header.sequence);
    } else {  // pong
        const Nanoseconds sample = now - Nanoseconds{static_cast<std::int64_t>(header.sequence)};
        if (sample.value >= 0 && sample <= config_.silence) stream.on_pong(sample);
    }
    return {};
}

Result<void> Session::on_sequenced(const FrameHeader& header, Bytes payload) {
    switch (received_.add(header.sequence)) {
        case SequenceWindow::Outcome::known:
            ++counters_.duplicate_frames;
            return {};
        case SequenceWindow::Outcome::beyond:
            return violation("a sequence beyond the window");
        case SequenceWindow::Outcome::fresh:
            break;
    }
    ++counters_.received_frames;
    if (is_ordered(header.type)) return on_ordered(header, payload);
    outbound_.on_credit(header, payload);
    return {};
}

void Session::forgive(Nanoseconds now) {
    for (Stream& stream : streams_) stream.note_input(now);
}

void Session::on_time(Nanoseconds now) {
    channels_.remove_finished();
    for (Stream& stream : streams_) stream.on_time(config_.heartbeat, now);
}

Nanoseconds Session::next_deadline() const {
    Nanoseconds deadline = kNever;
    for (const Stream& stream : streams_) deadline = std::min(deadline, stream.next_deadline(config_));
    if (outbound_.waits() || !credits_.empty()) deadline = std::min(deadline, outbound_.in_credit_at());
    return deadline;
}

}  // namespace mcastcoll::gateway::session
