// Incoming side of a gateway session: restores the order of frames, delivers data to the host (the session's
// owner) at its speed, and grants credit for the consumed data.
#include <algorithm>
#include <array>
#include <cerrno>

#include "gateway/session/session.h"
#include "wire/bytes.h"

namespace mcastcoll::gateway::session {
namespace {

constexpr int kMaxControl = 2;  // per channel: finish, and close or reset

}  // namespace

Result<void> Session::violation(const char* what) {
    ++counters_.violations;
    return Error{EPROTO, what};
}

Result<void> Session::on_ordered(const FrameHeader& header, Bytes payload) {
    Channel* channel = channels_.find(header.channel);
    if (channel == nullptr) {
        const bool even = header.channel % 2 == 0;
        if (even == config_.even || header.channel == 0)
            return violation("a frame of a channel that was not opened here");
        if (channels_.size() >= 2 * config_.max_channels) return violation("too many channels");
        channel = &channels_.create(header.channel, false, 0, config_.first_window);
    }
    const std::uint32_t ahead = header.order - static_cast<std::uint32_t>(channel->expected);
    if (ahead >= SequenceWindow::kSize || channel->last_received)
        return violation("a frame out of the order of its channel");
    if (header.type == FrameType::data && !channel->window.receive(cost_of(header.length)))
        return violation("more data than there is credit for");
    if (ahead > 0) {
        // Early data is bounded by credit. Of the other types a channel has at most two frames, and open must
        // be its first.
        if (header.type == FrameType::open)
            return violation("a channel that does not begin with open, or has two");
        constexpr auto is_control = [](const auto& one) { return one.second.type != FrameType::data; };
        if (header.type != FrameType::data &&
            std::ranges::count_if(channel->early, is_control) >= kMaxControl)
            return violation("more control frames than a channel has");
        const auto [place, inserted] = channel->early.try_emplace(channel->expected + ahead);
        if (!inserted) return violation("two frames with the same order");
        place->second.type = header.type;
        if (!channel->discarding) place->second.payload.assign(payload.begin(), payload.end());
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

Result<void> Session::process(Channel& channel, FrameType type, Bytes payload) {
    const bool first = channel.expected++ == 0;
    if (channel.last_received) return violation("a frame after its channel's last");
    if ((first && !channel.opened_here) != (type == FrameType::open))
        return violation("a channel that does not begin with open, or has two");
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
            if (channel.inbox.empty()) report_finish(channel);
            return {};
        case FrameType::reset:
            on_reset(channel);
            return {};
        case FrameType::close:
            if (!channel.finish_received && !channel.discarding) return violation("close before finish");
            channel.last_received = true;
            outbound_.check_over(channel);
            return {};
        case FrameType::credit:
        case FrameType::ack:
        case FrameType::ping:
        case FrameType::pong:
        case FrameType::welcome:
            break;
    }
    return violation("a frame without an order");
}

Result<void> Session::on_open(Channel& channel, Bytes payload) {
    if (payload.size() < 4) return violation("an open without a window");
    channel.limit = std::max<std::uint64_t>(channel.limit, wire::get<std::uint32_t>(payload.data()));
    ++counters_.accepted;
    channel.window.grow(config_.opened_window, config_.max_window);
    if (channel.window.has_grown()) owe_credit(channel);
    channel.known = true;
    host_.opened(channel.id, payload.subspan(4));
    return {};
}

void Session::on_data(Channel& channel, Bytes payload) {
    counters_.received_bytes += payload.size();
    if (channel.discarding) return;
    const std::size_t taken = channel.inbox.empty() ? host_.deliver(channel.id, payload) : 0;
    if (channel.discarding) return;  // the host reset the channel during deliver()
    if (taken == payload.size()) {
        consume(channel, payload.size());
        return;
    }
    // A frame counts as consumed only when it was taken completely.
    if (channel.inbox.empty()) channel.taken_of_first = taken;
    channel.inbox.emplace_back(payload.begin(), payload.end());
    inbox_bytes_ += payload.size();
}

void Session::drain(ChannelId id) {
    Channel* const channel = channels_.find(id);
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
    if (channel->finish_received) report_finish(*channel);
}

void Session::report_finish(Channel& channel) {
    if (channel.finish_reported) return;
    channel.finish_reported = true;
    if (!channel.discarding) host_.finished(channel.id);
    outbound_.check_over(channel);
}

void Session::on_reset(Channel& channel) {
    channel.last_received = true;
    const bool report = !channel.discarding;
    discard(channel);
    outbound_.enqueue_last(channel, FrameType::close);
    if (report) host_.was_reset(channel.id);
    outbound_.check_over(channel);
}

// Drops the received data and all data to come.
void Session::discard(Channel& channel) {
    channel.discarding = true;
    for (const auto& piece : channel.inbox) inbox_bytes_ -= piece.size();
    channel.inbox.clear();
    channel.taken_of_first = 0;
    for (auto& [order, held] : channel.early)
        if (held.type == FrameType::data) std::vector<std::byte>().swap(held.payload);
}

// The host has consumed a frame's payload.
void Session::consume(Channel& channel, std::size_t payload) {
    channel.window.consume(cost_of(payload));
    if (channel.finish_received) return;
    channel.window.follow(config_.max_window);
    if (!channel.credit_due && channel.window.should_grant()) owe_credit(channel);
}

void Session::owe_credit(Channel& channel) {
    channel.credit_due = true;
    credits_.push_back(channel.id);
}

// Returns a due credit frame, or null.
FramePointer Session::take_credit() {
    while (!credits_.empty()) {
        Channel* channel = channels_.find(credits_.front());
        credits_.pop_front();
        if (channel == nullptr || !channel->credit_due) continue;
        channel->credit_due = false;
        std::array<std::byte, kCreditSize> limit;
        wire::put(limit.data(), channel->window.grant());
        return std::make_unique<Frame>(FrameHeader{.type = FrameType::credit, .channel = channel->id}, limit);
    }
    return nullptr;
}

}  // namespace mcastcoll::gateway::session
