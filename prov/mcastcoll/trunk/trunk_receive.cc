// What comes into a trunk: acknowledgements, credit, and channels' frames, which are put in order here.
#include <algorithm>
#include <cassert>
#include <cerrno>

#include "trunk/trunk.h"
#include "wire/bytes.h"

namespace mcastcoll::trunk {
namespace {

// An acknowledgement at once after so much; less waits for a while.
constexpr std::uint64_t kAckFrames = 64, kAckBytes = 256 * 1024;

}  // namespace

Result<void> Trunk::violation(const char* what) {
    ++counters_.violations;
    return Error{EPROTO, what};
}

Result<void> Trunk::on_frame(unsigned index, const FrameHeader& header, Bytes payload, Nanoseconds now) {
    Stream& stream = streams_[index];
    assert(payload.size() == header.length);
    if (!stream.up) return {};
    const Entry entry(*this);
    switch (header.type) {
        case FrameType::ack:
            return acknowledged(stream, header.sequence);
        case FrameType::ping:
            stream.pong = header.sequence;
            stream.pong_due = true;
            return {};
        case FrameType::pong: {
            const Nanoseconds sample = now - Nanoseconds{static_cast<std::int64_t>(header.sequence)};
            if (sample.value < 0 || sample > config_.silence) return {};
            stream.round_trip = stream.round_trip.value == 0
                                    ? sample
                                    : Nanoseconds{(stream.round_trip.value * 7 + sample.value) / 8};
            return {};
        }
        case FrameType::welcome:
            return violation("a second welcome");
        case FrameType::open:
        case FrameType::data:
        case FrameType::finish:
        case FrameType::reset:
        case FrameType::close:
        case FrameType::credit:
            break;
    }
    ++stream.received;
    stream.received_bytes += kHeaderSize + header.length;
    if (stream.received - stream.ack_sent >= kAckFrames ||
        stream.received_bytes - stream.ack_sent_bytes >= kAckBytes)
        stream.ack_due = true;
    else if (stream.ack_at == kNever)
        stream.ack_at = now + config_.ack_delay;
    switch (received_.add(header.sequence)) {
        case SequenceWindow::Verdict::known:
            ++counters_.duplicate_frames;
            return {};
        case SequenceWindow::Verdict::beyond:
            return violation("a sequence beyond the window");
        case SequenceWindow::Verdict::fresh:
            break;
    }
    ++counters_.received_frames;
    return is_ordered(header.type) ? on_ordered(header, payload) : on_credit(header, payload);
}

Result<void> Trunk::acknowledged(Stream& stream, std::uint64_t count) {
    if (count < stream.acked || count - stream.acked > stream.unacked.size())
        return violation("an acknowledgement of frames that were not sent");
    for (; stream.acked < count; ++stream.acked) {
        FramePointer frame = std::move(stream.unacked.front());
        stream.unacked.pop_front();
        stream.in_flight -= frame->bytes().size();
        acknowledged_.add(frame->header.sequence);
        forget(std::move(frame));
    }
    return {};
}

Result<void> Trunk::on_credit(const FrameHeader& header, Bytes payload) {
    Channel* channel = find(header.channel);
    if (channel == nullptr) return {};  // we are done with it
    const auto limit = wire::get<std::uint64_t>(payload.data());
    if (limit <= channel->limit) return {};  // overtaken by a later one
    channel->limit = limit;
    if (channel->wants_credit && !channel->is_sendable) {
        channel->is_sendable = true;
        sendable_.push_back(channel->id);
    }
    channel->wants_credit = false;
    return {};
}

Result<void> Trunk::on_ordered(const FrameHeader& header, Bytes payload) {
    Channel* channel = find(header.channel);
    if (channel == nullptr) {
        const bool even = header.channel % 2 == 0;
        if (even == config_.even || header.channel == 0)
            return violation("a frame of a channel that we did not open");
        if (channels_.size() >= 2 * config_.max_channels) return violation("too many channels");
        channel = &create(header.channel, false);
    }
    const std::uint32_t ahead = header.order - static_cast<std::uint32_t>(channel->expected);
    if (ahead >= SequenceWindow::kSize || channel->last_received)
        return violation("a frame out of its channel's order");
    if (header.type == FrameType::data) {
        channel->received += cost_of(header.length);
        if (channel->received > channel->granted) return violation("more data than there is credit for");
    }
    if (ahead > 0) {
        const auto [place, inserted] = channel->early.try_emplace(channel->expected + ahead);
        if (!inserted) return violation("two frames of the same order");
        place->second.type = header.type;
        if (!channel->discarding || header.type == FrameType::open)
            place->second.payload.assign(payload.begin(), payload.end());
        ++counters_.early_frames;
        return {};
    }
    if (auto done = process(*channel, header.type, payload); !done) return done;
    while (!channel->early.empty() && channel->early.begin()->first == channel->expected) {
        const auto next = channel->early.extract(channel->early.begin());
        if (auto done = process(*channel, next.mapped().type, next.mapped().payload); !done) return done;
    }
    return {};
}

Result<void> Trunk::process(Channel& channel, FrameType type, Bytes payload) {
    const bool first = channel.expected++ == 0;
    if (channel.last_received) return violation("a frame after its channel's last");
    if ((first && !channel.ours) != (type == FrameType::open))
        return violation("a channel does not begin with open, or has another");
    switch (type) {
        case FrameType::open:
            return on_open(channel, payload);
        case FrameType::data:
            if (channel.finish_received) return violation("data after finish");
            on_data(channel, payload);
            return {};
        case FrameType::finish:
            if (channel.finish_received) return violation("a second finish");
            channel.finish_received = true;
            if (channel.inbox.empty()) tell_finish(channel);
            return {};
        case FrameType::reset:
            on_reset(channel);
            return {};
        case FrameType::close:
            if (!channel.finish_received && !channel.discarding) return violation("close before finish");
            channel.last_received = true;
            check_over(channel);
            return {};
        case FrameType::credit:
        case FrameType::ack:
        case FrameType::ping:
        case FrameType::pong:
        case FrameType::welcome:
            break;
    }
    return violation("a frame that has no order");
}

Result<void> Trunk::on_open(Channel& channel, Bytes payload) {
    if (payload.size() < 4) return violation("an open without a window");
    channel.limit = std::max<std::uint64_t>(channel.limit, wire::get<std::uint32_t>(payload.data()));
    ++counters_.channels_accepted;
    grow(channel, config_.opened_window);
    if (channel.window > channel.granted) {
        channel.credit_due = true;
        credits_.push_back(channel.id);
    }
    channel.known = true;
    host_.opened(channel.id, payload.subspan(4));
    return {};
}

void Trunk::on_data(Channel& channel, Bytes payload) {
    counters_.received_bytes += payload.size();
    if (channel.discarding) return;
    const std::size_t taken = channel.inbox.empty() ? host_.deliver(channel.id, payload) : 0;
    if (channel.discarding) return;  // the host found out that it does not want it any more
    if (taken == payload.size()) {
        consume(channel, payload.size());
        return;
    }
    // The part that was taken stays, to be counted with the rest of its frame.
    if (channel.inbox.empty()) channel.taken_of_first = taken;
    channel.inbox.emplace_back(payload.begin(), payload.end());
    inbox_bytes_ += payload.size();
}

void Trunk::drain(ChannelId id) {
    const Entry entry(*this);
    Channel* channel = find(id);
    if (channel == nullptr || channel->discarding || channel->inbox.empty()) return;
    while (!channel->inbox.empty()) {
        const Bytes rest = Bytes(channel->inbox.front()).subspan(channel->taken_of_first);
        const std::size_t taken = host_.deliver(id, rest);
        if (channel->discarding) return;
        channel->taken_of_first += taken;
        if (taken < rest.size()) return;
        const std::size_t size = channel->inbox.front().size();
        channel->inbox.pop_front();
        channel->taken_of_first = 0;
        inbox_bytes_ -= size;
        consume(*channel, size);
    }
    if (channel->finish_received) tell_finish(*channel);
}

void Trunk::tell_finish(Channel& channel) {
    if (channel.finish_told) return;
    channel.finish_told = true;
    if (!channel.discarding) host_.finished(channel.id);
    check_over(channel);
}

void Trunk::on_reset(Channel& channel) {
    channel.last_received = true;
    clear_inbox(channel);
    const bool tell = !channel.discarding;
    channel.discarding = true;
    enqueue_last(channel, FrameType::close);
    if (tell) host_.was_reset(channel.id);
    check_over(channel);
}

void Trunk::clear_inbox(Channel& channel) {
    for (const auto& piece : channel.inbox) inbox_bytes_ -= piece.size();
    channel.inbox.clear();
    channel.taken_of_first = 0;
    for (auto& [order, held] : channel.early)
        if (held.type == FrameType::data) std::vector<std::byte>().swap(held.payload);
}

// The host has taken a frame's payload.  A channel that uses its window up gets a larger one as long as there
// is memory.
void Trunk::consume(Channel& channel, std::size_t payload) {
    channel.consumed += cost_of(payload);
    if (channel.finish_received) return;
    if (channel.consumed - channel.grown_at >= channel.window) {
        channel.grown_at = channel.consumed;
        grow(channel, channel.window * 2);
    }
    if (channel.credit_due || channel.consumed + channel.window < channel.granted + channel.window / 2)
        return;
    channel.credit_due = true;
    credits_.push_back(channel.id);
}

void Trunk::grow(Channel& channel, std::uint64_t to) {
    to = std::min<std::uint64_t>(to, config_.max_window);
    // Half of what is left at most: the next ones want some, too.
    if (to <= channel.window || (to - channel.window) * 2 > pool_.free()) return;
    const auto more = static_cast<std::size_t>(to - channel.window);
    if (!pool_.take(more)) return;
    channel.from_pool += more;
    channel.window = to;
}

}  // namespace mcastcoll::trunk
