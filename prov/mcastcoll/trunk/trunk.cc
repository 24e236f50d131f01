// Streams, channels and time; trunk_send.cc has what goes out, trunk_receive.cc what comes in.
#include "trunk/trunk.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::trunk {

Trunk::Trunk(const Config& config, WindowPool& pool, Host& host)
    : config_(config),
      pool_(pool),
      host_(host),
      next_channel_(config.even ? 2 : 1),
      bucket_(config.cap_bytes_per_second) {
    assert(config.first_window >= kMinWindow && config.max_window >= config.first_window);
}

Trunk::~Trunk() {
    for (auto& [id, channel] : channels_) pool_.give_back(channel->from_pool);
}

void Trunk::stream_up(unsigned index, Nanoseconds now) {
    assert(index < kMaxStreams && !streams_[index].up);
    Stream& stream = streams_[index];
    stream.up = true;
    stream.sent = stream.heard = now;
    ++counters_.streams_up;
}

void Trunk::stream_down(unsigned index, Nanoseconds) {
    Stream& stream = streams_[index];
    if (!stream.up) return;
    ++counters_.streams_lost;
    for (auto* frames : {&stream.unacked, &stream.writing})
        for (FramePointer& frame : *frames) {
            if (!is_sequenced(frame->header.type)) continue;
            ++counters_.resent_frames;
            again_.push_back(std::move(frame));
        }
    std::sort(again_.begin(), again_.end(), [](const FramePointer& left, const FramePointer& right) {
        return left->header.sequence < right->header.sequence;
    });
    stream = Stream();
}

unsigned Trunk::streams_up() const {
    return static_cast<unsigned>(
        std::count_if(streams_.begin(), streams_.end(), [](const Stream& stream) { return stream.up; }));
}

void Trunk::abandon(Nanoseconds now) {
    const Entry entry(*this);
    for (unsigned i = 0; i < kMaxStreams; ++i) stream_down(i, now);
    for (auto* queue : {&again_, &urgent_, &bulk_}) queue->clear();
    credits_.clear();
    sendable_.clear();
    wait_for_room_.clear();
    held_ = bulk_bytes_ = inbox_bytes_ = urgent_in_a_row_ = 0;
    next_sequence_ = 1;
    acknowledged_ = SequenceWindow();
    received_ = SequenceWindow();
    ++counters_.sessions_lost;
    // The host may call back for channels that are no longer there, or open new ones.
    auto gone = std::move(channels_);
    channels_.clear();
    for (auto& [id, channel] : gone) {
        pool_.give_back(channel->from_pool);
        // Of a channel whose open was still to come, the host knows nothing.
        if (!channel->discarding && channel->known) host_.was_reset(id);
    }
}

Channel* Trunk::find(ChannelId id) const {
    const auto found = channels_.find(id);
    return found == channels_.end() ? nullptr : found->second.get();
}

Channel& Trunk::create(ChannelId id, bool ours) {
    auto channel = std::make_unique<Channel>();
    channel->id = id;
    channel->ours = ours;
    channel->limit = ours ? peer_window_ : 0;
    channel->window = channel->granted = config_.first_window;
    Channel& created = *channel;
    channels_.emplace(id, std::move(channel));
    return created;
}

std::optional<ChannelId> Trunk::open_channel(Bytes preface) {
    assert(preface.size() + 4 <= kMaxPayload);
    if (channels_.size() >= config_.max_channels) return std::nullopt;
    const Entry entry(*this);
    while (channels_.count(next_channel_) != 0 || next_channel_ == 0) next_channel_ += 2;
    Channel& channel = create(next_channel_, true);
    channel.known = true;
    next_channel_ += 2;
    grow(channel, config_.opened_window);
    channel.granted = channel.window;
    auto frame = std::make_unique<Frame>(preface.size() + 4);
    frame->header = {FrameType::open, static_cast<std::uint32_t>(preface.size() + 4), channel.id, 0, 0};
    wire::put(frame->space().data(), static_cast<std::uint32_t>(channel.granted));
    std::copy(preface.begin(), preface.end(), frame->space().begin() + 4);
    ++counters_.channels_opened;
    enqueue(channel, std::move(frame));
    return channel.id;
}

void Trunk::finish(ChannelId id) {
    Channel* channel = find(id);
    if (channel == nullptr || channel->finish_queued || channel->last_queued) return;
    const Entry entry(*this);
    channel->finish_queued = true;
    auto frame = std::make_unique<Frame>(0);
    frame->header = {FrameType::finish, 0, id, 0, 0};
    enqueue(*channel, std::move(frame));
    check_over(*channel);
}

void Trunk::reset(ChannelId id) {
    Channel* channel = find(id);
    if (channel == nullptr || channel->discarding) return;
    const Entry entry(*this);
    channel->discarding = true;
    clear_inbox(*channel);
    ++counters_.resets;
    enqueue_last(*channel, FrameType::reset);
    check_over(*channel);
}

// Both halves are done with: says so, and lets the channel go once the peer has said it, too.
void Trunk::check_over(Channel& channel) {
    if (channel.finish_queued && channel.finish_told) enqueue_last(channel, FrameType::close);
    if (channel.over()) over_.push_back(channel.id);
}

void Trunk::bury() {
    for (std::size_t i = 0; i < over_.size(); ++i) {
        const auto found = channels_.find(over_[i]);
        if (found == channels_.end() || !found->second->over()) continue;
        clear_inbox(*found->second);
        pool_.give_back(found->second->from_pool);
        channels_.erase(found);
    }
    over_.clear();
}

void Trunk::forgive(Nanoseconds now) {
    for (Stream& stream : streams_) stream.heard = now;
}

void Trunk::on_time(Nanoseconds now) {
    for (Stream& stream : streams_) {
        if (!stream.up) continue;
        if (stream.ack_at <= now) stream.ack_due = true;
        if (stream.sent + config_.heartbeat <= now) stream.ping_due = true;
    }
}

Nanoseconds Trunk::next_deadline() const {
    Nanoseconds deadline = kNever;
    for (const Stream& stream : streams_)
        if (stream.up)
            deadline = std::min(
                {deadline, stream.ack_at, stream.sent + config_.heartbeat, stream.heard + config_.silence});
    if (sequenced_waits()) deadline = std::min(deadline, bucket_.in_credit_at());
    return deadline;
}

std::optional<unsigned> Trunk::silent_stream(Nanoseconds now) const {
    for (unsigned i = 0; i < kMaxStreams; ++i)
        if (streams_[i].up && streams_[i].heard + config_.silence <= now) return i;
    return std::nullopt;
}

}  // namespace mcastcoll::trunk
