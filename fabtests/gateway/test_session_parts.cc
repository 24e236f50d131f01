// The parts of a gateway session, each by itself: windows, streams, channels, and the order of sending.
#include <criterion/criterion.h>

#include <vector>

#include "gateway/session/outbound.h"
#include "gateway/session/stream.h"

using namespace mcastcoll;
using namespace mcastcoll::gateway::session;

namespace {

constexpr Nanoseconds ms(std::int64_t count) {
    return Nanoseconds::from_ms(count);
}

FramePointer frame_of(FrameType type, std::size_t length, std::uint64_t sequence = 0) {
    auto frame = std::make_unique<Frame>(length);
    frame->header = {type, static_cast<std::uint32_t>(length), 1, 0, sequence};
    return frame;
}

constexpr auto no_credit = []() -> FramePointer { return nullptr; };

// The sending part of a session, with a channel that has plenty of credit.
struct Sender {
    Config config;
    Counters counters;
    WindowPool pool{0};
    Channels channels{false, pool};
    Outbound out{config, channels, counters};
    Channel& channel = channels.create(channels.new_id(), true, 1 << 20, 1 << 16);

    std::size_t next() {
        const FramePointer frame = out.take(ms(1), no_credit);
        return frame == nullptr ? 0 : frame->header.length;
    }
};

}  // namespace

Test(session_window, consumed_credit_is_granted_again_in_time) {
    WindowPool pool{0};
    ReceiveWindow window(1000, pool);
    cr_assert(window.receive(1000));
    cr_assert(!window.should_grant());
    window.consume(400);
    cr_assert(!window.should_grant(), "not worth a frame");
    window.consume(100);
    cr_assert(window.should_grant());
    cr_assert_eq(window.grant(), 1500);
    cr_assert(window.receive(500));
    cr_assert(!window.receive(1), "more than was granted");
}

Test(session_window, grows_when_used_up_while_memory_is_available) {
    WindowPool pool{3000};
    {
        ReceiveWindow window(1000, pool);
        window.consume(999);
        window.follow(8000);
        cr_assert_eq(pool.free, 3000);
        window.consume(1);
        window.follow(8000);
        cr_assert_eq(pool.free, 2000, "twice as large");
        window.consume(2000);
        window.follow(8000);
        cr_assert_eq(pool.free, 2000, "half of what is left at most");
    }
    cr_assert_eq(pool.free, 3000, "given back");
}

Test(session_stream, acknowledges_soon_and_at_once_after_much) {
    Counters counters;
    Stream stream;
    stream.come_up(ms(0));
    stream.on_sequenced(100, ms(5), ms(10));
    cr_assert(!stream.has_control());
    stream.on_time(ms(100), ms(15));
    cr_assert(stream.has_control());
    const FramePointer ack = stream.take_control(ms(15), counters);
    cr_assert(ack->header.type == FrameType::ack && ack->header.sequence == 1);
    for (int i = 0; i < 64; ++i) stream.on_sequenced(100, ms(5), ms(16));
    cr_assert(stream.has_control());
    cr_assert_eq(stream.take_control(ms(16), counters)->header.sequence, 65);
    cr_assert_null(stream.take_control(ms(16), counters));
}

Test(session_stream, an_idle_stream_is_kept_warm_and_found_silent) {
    Counters counters;
    Config config;
    Stream stream;
    cr_assert(stream.next_deadline(config) == kNever);
    stream.come_up(ms(0));
    cr_assert(stream.next_deadline(config) == config.heartbeat);
    stream.on_time(config.heartbeat, config.heartbeat);
    const FramePointer ping = stream.take_control(config.heartbeat, counters);
    cr_assert(ping->header.type == FrameType::ping);
    stream.on_pong(ms(8));
    stream.on_pong(ms(16));
    cr_assert(stream.round_trip() == ms(9), "smoothed");
    cr_assert(!stream.is_silent(config.silence, config.silence - Nanoseconds{1}));
    cr_assert(stream.is_silent(config.silence, config.silence));
    stream.note_input(config.silence);
    cr_assert(!stream.is_silent(config.silence, config.silence));
}

Test(session_stream, a_broken_stream_returns_unacknowledged_frames) {
    Counters counters;
    Stream stream;
    stream.come_up(ms(0));
    for (std::uint64_t number = 1; number <= 3; ++number)
        stream.enqueue(frame_of(FrameType::data, 10, number), ms(1));
    stream.on_ping(7);
    stream.enqueue(stream.take_control(ms(1), counters), ms(1));
    cr_assert_null(stream.take_back(), "its own stays");
    stream.written(2);
    const auto ignore = [](FramePointer) {};
    cr_assert(!stream.acknowledge(3, ignore), "of what was not written");
    cr_assert(stream.acknowledge(1, ignore));
    cr_assert_eq(stream.in_flight(), 2 * (kHeaderSize + 10));
    const std::vector<FramePointer> lost = stream.go_down();
    cr_assert(lost.size() == 2 && lost[0]->header.sequence == 2 && lost[1]->header.sequence == 3);
    cr_assert(!stream.is_up() && stream.in_flight() == 0);
}

Test(session_channels, a_finished_channel_is_removed_once) {
    WindowPool pool{0};
    Channels channels(true, pool);
    Channel& channel = channels.create(channels.new_id(), true, 1, 1);
    cr_assert_eq(channel.id, 2);
    cr_assert_eq(channels.new_id(), 4);
    channel.last_queued = true;
    channels.note_over(channel);
    channels.remove_finished();
    cr_assert_eq(channels.size(), 1, "the peer has not said its last");
    channel.last_received = true;
    channels.note_over(channel);
    channels.note_over(channel);
    channels.remove_finished();
    cr_assert_null(channels.find(2));
}

Test(session_outbound, small_frames_go_ahead_of_bulk_of_other_channels) {
    Sender one;
    Channel& other = one.channels.create(one.channels.new_id(), true, 1 << 20, 1 << 16);
    one.out.send(one.channel, frame_of(FrameType::data, kUrgent + 1));
    one.out.send(one.channel, frame_of(FrameType::data, 5));
    one.out.send(other, frame_of(FrameType::data, 7));
    cr_assert_eq(one.next(), 7);
    cr_assert_eq(one.next(), kUrgent + 1, "not overtaken by its own channel's");
    cr_assert_eq(one.next(), 5);
    cr_assert_eq(one.next(), 0);
    cr_assert(!one.out.waits() && one.out.memory_held() > 0, "kept until it is acknowledged");
}

Test(session_outbound, lost_frames_go_first_and_in_order) {
    Sender one;
    std::vector<FramePointer> sent;
    for (std::size_t length : {11, 12, 13}) one.out.send(one.channel, frame_of(FrameType::data, length));
    for (int i = 0; i < 2; ++i) sent.push_back(one.out.take(ms(1), no_credit));
    std::swap(sent[0], sent[1]);
    one.out.lost(std::move(sent));
    cr_assert_eq(one.next(), 11);
    cr_assert_eq(one.next(), 12);
    FramePointer third = one.out.take(ms(1), no_credit);
    cr_assert_eq(third->header.sequence, 3);
    one.out.put_back(std::move(third));
    cr_assert_eq(one.next(), 13, "with the number that it has");
}

Test(session_outbound, a_channel_is_returned_once_it_has_credit) {
    Sender one;
    Channel& poor = one.channels.create(one.channels.new_id(), true, 100, 1 << 16);
    cr_assert_eq(one.out.may_send(poor.id), 0);
    cr_assert(!one.out.next_sendable());
    FrameHeader header{FrameType::credit, kCreditSize, poor.id, 0, 1};
    const std::byte limit[kCreditSize] = {{}, {}, {}, {}, {}, {}, std::byte{16}, {}};
    one.out.on_credit(header, limit);
    one.out.on_credit(header, limit);
    cr_assert(one.out.next_sendable() == poor.id);
    cr_assert(!one.out.next_sendable(), "once");
    cr_assert_eq(one.out.may_send(poor.id), 4096 - kHeaderSize);
}
