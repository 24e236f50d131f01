// Gateway sessions: pairs of them on simulated streams that delay, break at any byte and come back, driven by
// a seed.  Every channel's bytes must arrive once and in order, no state may be left behind, and stored data
// must stay within their limits.
#include <criterion/criterion.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gateway/session/hello.h"
#include "gateway/session/session.h"
#include "wire/bytes.h"

using namespace mcastcoll;
using namespace mcastcoll::gateway::session;

namespace {

constexpr Nanoseconds kStep = Nanoseconds::from_us(100);

std::byte byte_at(std::uint64_t stream, std::uint64_t position) {
    return static_cast<std::byte>((position * 2654435761U + stream * 40503U) >> 7 & 0xff);
}

// One end of a channel (a connection in a gateway session), and the process behind it.
struct End {
    std::uint64_t name = 0;     // seed of its bytes
    std::uint64_t to_send = 0;  // bytes
    std::uint64_t sent = 0, got = 0;
    std::uint64_t peer_name = 0;
    bool reset_at_end = false, finished = false, peer_finished = false, gone = false, was_reset = false;
    bool reading = true;
};

struct Settings {
    unsigned streams = 3;
    Config config;
    std::size_t pool = 1024 * 1024;
    bool breaks = false, resets = false, slow = false;
};

class Side final : public Host {
  public:
    Side(const Settings& settings, bool even, std::mt19937_64& random)
        : settings_(settings), random_(random), pool{settings.pool} {
        Config config = settings.config;
        config.even = even;
        session = std::make_unique<Session>(config, pool, *this);
        session->set_peer_window(config.first_window);
    }

    void connect(std::uint64_t name, std::uint64_t bytes, bool reset) {
        std::array<std::byte, 16> preface;
        wire::put(preface.data(), name);
        wire::put(preface.data() + 8, bytes);
        const auto id = session->open_channel(preface);
        cr_assert(id.has_value());
        ends[*id] = End{name * 2, bytes, 0, 0, name * 2 + 1, reset};
        pump(*id);
    }

    void pump(ChannelId id) {
        End& end = ends.at(id);
        while (!end.gone && !end.finished && end.sent < end.to_send) {
            const std::size_t max = session->may_send(id);
            if (max == 0) return;
            const std::size_t wish = random_() % 3 == 0 ? 1 + random_() % 200 : 1 + random_() % kMaxPayload;
            const std::size_t size = std::min<std::uint64_t>({max, wish, end.to_send - end.sent});
            auto frame = std::make_unique<Frame>(size);
            frame->header.length = static_cast<std::uint32_t>(size);
            for (std::size_t i = 0; i < size; ++i) frame->space()[i] = byte_at(end.name, end.sent + i);
            session->send(id, std::move(frame));
            end.sent += size;
        }
        if (end.gone || end.finished) return;
        end.finished = true;
        if (end.reset_at_end) {
            end.gone = true;
            session->reset(id);
        } else {
            session->finish(id);
        }
    }

    void opened(ChannelId id, Bytes preface) override {
        cr_assert_eq(preface.size(), 16U);
        const auto name = wire::get<std::uint64_t>(preface.data());
        ends[id] = End{name * 2 + 1, wire::get<std::uint64_t>(preface.data() + 8) / 2, 0, 0, name * 2};
        started.push_back(id);
    }
    std::size_t deliver(ChannelId id, Bytes bytes) override {
        End& end = ends.at(id);
        cr_assert_not(end.gone, "bytes for a channel that is gone");
        cr_assert_not(end.peer_finished);
        std::size_t take = bytes.size();
        if (!end.reading || deaf) take = 0;
        if (settings_.slow && take > 0) take = random_() % (take + 1);
        for (std::size_t i = 0; i < take; ++i)
            cr_assert_eq(bytes[i], byte_at(end.peer_name, end.got + i), "channel %u: wrong byte at %lu", id,
                         end.got + i);
        end.got += take;
        return take;
    }
    void finished(ChannelId id) override {
        cr_assert_not(ends.at(id).peer_finished);
        ends.at(id).peer_finished = true;
    }
    void was_reset(ChannelId id) override {
        cr_assert_not(ends.at(id).gone);
        ends.at(id).gone = ends.at(id).was_reset = true;
    }

    const Settings settings_;
    std::mt19937_64& random_;
    WindowPool pool;
    std::unique_ptr<Session> session;
    std::map<ChannelId, End> ends;
    std::vector<ChannelId> started;
    bool deaf = false;
};

class World {
  public:
    World(const Settings& settings, std::uint64_t seed)
        : settings_(settings), random_(seed), left(settings, true, random_), right(settings, false, random_) {
        wires_.resize(settings.streams);
        for (unsigned i = 0; i < settings.streams; ++i) raise(i);
    }

    void raise(unsigned i) {
        wires_[i] = Wire();
        wires_[i].up = true;
        left.session->stream_up(i, now);
        right.session->stream_up(i, now);
    }
    // Breaks a stream: some of the data in flight still arrive, and each side detects the break after its own
    // delay.
    void cut(unsigned i) {
        Wire& wire = wires_[i];
        if (!wire.up) return;
        wire.up = false;
        for (auto* way : {&wire.to_right, &wire.to_left})
            way->resize(way->empty() ? 0 : random_() % way->size());
        wire.left_notices = now + Nanoseconds::from_ms(static_cast<std::int64_t>(random_() % 20));
        wire.right_notices = now + Nanoseconds::from_ms(static_cast<std::int64_t>(random_() % 20));
        wire.back = now + Nanoseconds::from_ms(static_cast<std::int64_t>(21 + random_() % 30));
    }

    void step() {
        now = now + kStep;
        for (unsigned i = 0; i < wires_.size(); ++i) {
            Wire& wire = wires_[i];
            if (wire.up && settings_.breaks && random_() % 400 == 0) cut(i);
            carry(i, wire.to_right, *right.session);
            carry(i, wire.to_left, *left.session);
            if (wire.up || held_down) continue;
            if (wire.left_notices <= now) left.session->stream_down(i);
            if (wire.right_notices <= now) right.session->stream_down(i);
            if (wire.back <= now) raise(i);
        }
        for (Side* side : {&left, &right}) {
            side->session->on_time(now);
            for (auto& [id, end] : side->ends)
                if (!end.gone && end.reading) side->session->drain(id);
            for (const ChannelId id : std::exchange(side->started, {})) side->pump(id);
            while (const auto id = side->session->next_sendable())
                if (!side->ends.at(*id).gone) side->pump(*id);
        }
        for (unsigned i = 0; i < wires_.size(); ++i) {
            write(i, *left.session, wires_[i].to_right, wires_[i]);
            write(i, *right.session, wires_[i].to_left, wires_[i]);
        }
    }

    bool quiet() const {
        return left.session->channels() == 0 && right.session->channels() == 0 &&
               left.session->outbound().memory_held() == 0 && right.session->outbound().memory_held() == 0;
    }
    void run_until_quiet(unsigned max = 400'000) {
        for (unsigned i = 0; i < max && !quiet(); ++i) step();
        cr_assert(quiet(), "%zu and %zu channels, %zu and %zu bytes stay behind", left.session->channels(),
                  right.session->channels(), left.session->outbound().memory_held(),
                  right.session->outbound().memory_held());
        cr_assert_eq(left.pool.free, settings_.pool);
        cr_assert_eq(right.pool.free, settings_.pool);
        cr_assert_eq(left.session->inbox_bytes() + right.session->inbox_bytes(), 0U);
        for (Side* side : {&left, &right})
            for (auto& [id, end] : side->ends) {
                Side& other = side == &left ? right : left;
                if (end.gone || other.ends.at(id).gone) continue;
                cr_assert(end.finished && end.peer_finished);
                cr_assert_eq(end.sent, other.ends.at(id).got);
            }
    }

  private:
    struct Parcel {
        Nanoseconds at;
        std::vector<std::byte> bytes;
    };
    struct Wire {
        bool up = false;
        std::deque<Parcel> to_right, to_left;
        Nanoseconds left_notices{0}, right_notices{0}, back{0};
    };

    void carry(unsigned i, std::deque<Parcel>& way, Session& to) {
        while (!way.empty() && way.front().at <= now) {
            const Parcel parcel = std::move(way.front());
            way.pop_front();
            const auto header = get_header(parcel.bytes);
            cr_assert(header.has_value());
            to.note_input(i, now);
            const auto done = to.on_frame(i, *header, Bytes(parcel.bytes).subspan(kHeaderSize), now);
            cr_assert(done.ok(), "%s", done.ok() ? "" : done.error().message.c_str());
        }
    }
    // Writes a few frames of one side to a stream; now and then there is no room for the last of them.
    void write(unsigned i, Session& from, std::deque<Parcel>& way, const Wire& wire) {
        for (unsigned frames = 0; frames < 8 && from.next(i, now) != nullptr;) ++frames;
        if (!wire.up) return;  // the frames are lost, and neither side has noticed yet
        const auto& frames = from.stream(i).writing();
        if (random_() % 3 == 0) from.give_back(i, random_() % (frames.size() + 1));
        for (const FramePointer& frame : frames) {
            const Bytes bytes = frame->bytes();
            const auto delay = Nanoseconds::from_us(static_cast<std::int64_t>(500 + random_() % 3000));
            const Nanoseconds at = std::max(now + delay, way.empty() ? now : way.back().at);
            way.push_back({at, {bytes.begin(), bytes.end()}});
        }
        from.written(i, frames.size());
    }

    const Settings settings_;
    std::mt19937_64 random_;
    std::vector<Wire> wires_;

  public:
    Nanoseconds now{1};
    Side left, right;
    bool held_down = false;
};

Settings small() {
    Settings settings;
    settings.config.first_window = 4096;
    settings.config.opened_window = 16384;
    settings.config.max_window = 256 * 1024;
    settings.config.send_memory = 512 * 1024;
    settings.config.bulk_queue = 128 * 1024;
    return settings;
}

void run(const Settings& settings, std::uint64_t seed) {
    World world(settings, seed);
    std::mt19937_64 random(seed + 1);
    for (std::uint64_t name = 1; name <= 40; ++name) {
        const std::uint64_t bytes = random() % 4 == 0 ? random() % 400'000 : random() % 3000;
        (random() % 2 == 0 ? world.left : world.right)
            .connect(name, bytes, settings.resets && random() % 3 == 0);
        for (std::uint64_t steps = random() % 40; steps > 0; --steps) world.step();
    }
    world.run_until_quiet();
}

}  // namespace

TestSuite(session, .timeout = 300);

Test(session, carries_channels_over_one_stream) {
    Settings settings = small();
    settings.streams = 1;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) run(settings, seed);
}

Test(session, restores_the_order_of_several_streams) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) run(small(), seed);
}

Test(session, loses_and_doubles_nothing_when_streams_break) {
    Settings settings = small();
    settings.breaks = true;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) run(settings, seed);
}

Test(session, ends_channels_that_are_reset) {
    Settings settings = small();
    settings.breaks = settings.resets = settings.slow = true;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) run(settings, seed);
}

Test(session, counts_retransmitted_frames) {
    Settings settings = small();
    settings.streams = 2;
    World world(settings, 7);
    world.left.connect(1, 300'000, false);
    for (unsigned i = 0; i < 60; ++i) world.step();
    world.cut(0);
    world.run_until_quiet();
    cr_assert_eq(world.left.session->counters().streams_lost, 1U);
    cr_assert_gt(world.left.session->counters().resent_frames, 0U);
}

// Without a stream nothing is lost: data wait for the next stream.
Test(session, waits_while_there_is_no_stream) {
    World world(small(), 3);
    world.left.connect(1, 200'000, false);
    for (unsigned i = 0; i < 20; ++i) world.step();
    for (unsigned i = 0; i < 3; ++i) world.cut(i);
    for (unsigned i = 0; i < 600; ++i) world.step();
    cr_assert_eq(world.left.session->streams_up(), 3U, "they come back");
    world.run_until_quiet();
}

Test(session, a_slow_reader_stops_no_other_channel) {
    World world(small(), 5);
    world.left.connect(1, 5'000'000, false);
    for (unsigned i = 0; i < 100; ++i) world.step();
    const ChannelId slow = world.right.ends.begin()->first;
    world.right.ends.at(slow).reading = false;
    for (unsigned i = 0; i < 2000; ++i) world.step();
    const std::uint64_t stuck_at = world.left.ends.at(slow).sent;
    cr_assert_lt(stuck_at, 5'000'000U);
    cr_assert_leq(world.right.session->inbox_bytes(), 256U * 1024);
    for (std::uint64_t name = 2; name < 12; ++name) world.left.connect(name, 100'000, false);
    for (unsigned i = 0; i < 20'000 && world.right.session->channels() > 1; ++i) world.step();
    cr_assert_eq(world.right.session->channels(), 1U, "the others came through");
    cr_assert_eq(world.left.ends.at(slow).sent, stuck_at);
    world.right.ends.at(slow).reading = true;
    world.run_until_quiet();
}

Test(session, keeps_at_most_its_limit) {
    Settings settings = small();
    World world(settings, 9);
    world.held_down = true;
    for (unsigned i = 0; i < settings.streams; ++i) world.cut(i);
    for (std::uint64_t name = 1; name <= 200; ++name) world.left.connect(name, 1'000'000, false);
    for (unsigned i = 0; i < 1000; ++i) world.step();
    // One frame may exceed the limit, and each channel also has its open frame.
    cr_assert_lt(world.left.session->outbound().memory_held(), 512U * 1024 + 2 * kMaxPayload + 200 * 200);
}

Test(session, small_frames_go_ahead_of_bulk) {
    Settings settings = small();
    settings.streams = 1;
    World world(settings, 11);
    const auto send = [&](ChannelId id, std::uint32_t size) {
        auto frame = std::make_unique<Frame>(size);
        frame->header.length = size;
        world.left.session->send(id, std::move(frame));
    };
    const std::array<std::byte, 4> preface{};
    Session& session = *world.left.session;
    session.set_peer_window(256 * 1024);
    const ChannelId bulk = *session.open_channel(preface), small_one = *session.open_channel(preface);
    for (unsigned i = 0; i < 2; ++i) cr_assert_not_null(session.next(0, world.now));
    for (unsigned i = 0; i < 3; ++i) send(bulk, 30'000);
    send(small_one, 100);
    cr_assert_eq(session.next(0, world.now)->header.channel, small_one);
    cr_assert_eq(session.next(0, world.now)->header.channel, bulk);
    // Bulk data must not starve.
    unsigned urgent = 0;
    for (unsigned i = 0; i < 40; ++i) send(small_one, 4000);
    while (session.next(0, world.now)->header.channel == small_one) ++urgent;
    cr_assert(urgent > 10 && urgent < 20, "%u", urgent);
}

Test(session, frames_without_room_go_to_another_stream) {
    Settings settings = small();
    settings.streams = 2;
    World world(settings, 12);
    world.left.connect(1, 3000, false);
    Session& session = *world.left.session;
    const auto take = [&](unsigned stream) {
        std::vector<std::uint64_t> sequences;
        while (const Frame* frame = session.next(stream, world.now))
            sequences.push_back(frame->header.sequence);
        return sequences;
    };
    const auto first = take(0);
    cr_assert_gt(first.size(), 2U);
    const std::size_t before = session.stream(0).in_flight();
    session.give_back(0, first.size() - 1);
    cr_assert_eq(session.stream(0).writing().size(), 1U);
    cr_assert_lt(session.stream(0).in_flight(), before);
    const auto second = take(1);
    cr_assert(std::equal(first.begin() + 1, first.end(), second.begin(), second.end()),
              "same frames, same order");
    cr_assert_eq(session.stream(0).in_flight() + session.stream(1).in_flight(), before);
    cr_assert_eq(session.counters().sent_frames, first.size());
    session.give_back(1, second.size());
    session.give_back(0, 1);
    cr_assert_eq(session.stream(0).in_flight() + session.stream(1).in_flight(), 0U);
    world.run_until_quiet();
}

// While the peer has not acknowledged enough, no new frame gets a number; frames with a number must be sent
// all the same.
Test(session, frames_given_back_go_out_when_no_number_is_left) {
    Settings settings = small();
    settings.streams = 1;
    World world(settings, 13);
    Session& session = *world.left.session;
    session.set_peer_window(8 * 1024 * 1024);
    const ChannelId channel = *session.open_channel(std::array<std::byte, 4>());
    for (std::size_t i = 0; i < SequenceWindow::kSize + 10; ++i) {
        auto frame = std::make_unique<Frame>(1);
        frame->header.length = 1;
        session.send(channel, std::move(frame));
    }
    const auto take_all = [&] {
        std::size_t taken = 0;
        while (session.next(0, world.now) != nullptr) ++taken;
        return taken;
    };
    cr_assert_eq(take_all(), SequenceWindow::kSize);
    session.give_back(0, 100);
    cr_assert_eq(take_all(), 100U);
}

Test(session, abandoning_resets_every_channel) {
    World world(small(), 13);
    for (std::uint64_t name = 1; name < 5; ++name) world.left.connect(name, 200'000, false);
    for (unsigned i = 0; i < 60; ++i) world.step();
    world.left.session->abandon();
    world.right.session->abandon();
    cr_assert(world.quiet());
    cr_assert_eq(world.left.session->streams_up(), 0U);
    cr_assert_eq(world.left.pool.free, small().pool);
    for (auto& [id, end] : world.left.ends) cr_assert(end.was_reset);
    for (auto& [id, end] : world.right.ends) cr_assert(end.was_reset);
    for (unsigned i = 0; i < 3; ++i) world.raise(i);
    world.left.connect(9, 100'000, false);
    world.run_until_quiet();
}

Test(session, keeps_streams_warm_and_notices_silence) {
    World world(small(), 15);
    for (unsigned i = 0; i < 3000; ++i) world.step();
    cr_assert_geq(world.left.session->counters().heartbeats, 6U);
    cr_assert_gt(world.left.session->stream(0).round_trip().value, 0);
    const auto silent = [&](Nanoseconds now) {
        return world.left.session->stream(0).is_silent(small().config.silence, now);
    };
    cr_assert_not(silent(world.now));
    const Nanoseconds later = world.now + small().config.silence;
    cr_assert(silent(later));
    world.left.session->forgive(later);
    cr_assert_not(silent(later));
}

Test(session, stays_below_its_cap) {
    Settings settings = small();
    settings.config.cap_bytes_per_second = 1'000'000;
    World world(settings, 17);
    world.left.connect(1, 300'000, false);
    const Nanoseconds from = world.now;
    world.run_until_quiet();
    const double seconds = static_cast<double>((world.now - from).value) * 1e-9;
    cr_assert(seconds > 0.25 && seconds < 0.6, "%f", seconds);
}

// Every frame of a peer is either a violation or accepted, and never crashes the session.
Test(session, hostile_frames_are_violations) {
    const std::array<std::byte, 8> eight{};
    const std::vector<std::byte> much(kMaxPayload);
    const struct {
        const char* what;
        FrameHeader header;
        Bytes payload;
    } cases[] = {
        {"our own kind of channel", {FrameType::data, 8, 2, 0, 1}, eight},
        {"channel 0", {FrameType::open, 8, 0, 0, 1}, eight},
        {"no open", {FrameType::data, 8, 1, 0, 1}, eight},
        {"far ahead", {FrameType::data, 8, 1, 70'000, 1}, eight},
        {"sequence", {FrameType::open, 8, 1, 0, 65'537}, eight},
        {"more than credit", {FrameType::data, kMaxPayload, 1, 1, 1}, much},
        {"acknowledges nothing", {FrameType::ack, 0, 0, 0, 1}, {}},
        {"open without a window", {FrameType::open, 3, 1, 0, 1}, Bytes(eight).first(3)},
        {"close before finish", {FrameType::close, 0, 1, 0, 1}, {}},
        {"open that is not the first", {FrameType::open, 8, 1, 1, 1}, eight},
    };
    for (const auto& one : cases) {
        World world(small(), 19);
        const auto done = world.left.session->on_frame(0, one.header, one.payload, world.now);
        cr_assert_not(done.ok(), "taken: %s", one.what);
        cr_assert_eq(world.left.session->counters().violations, 1U);
        world.left.session->abandon();
    }
    World world(small(), 19);
    Session& session = *world.left.session;
    cr_assert(session.on_frame(0, {FrameType::open, 20, 1, 0, 1}, Bytes(much).first(20), world.now).ok());
    cr_assert(session.on_frame(0, {FrameType::open, 20, 1, 0, 1}, Bytes(much).first(20), world.now).ok());
    cr_assert_eq(session.counters().duplicate_frames, 1U, "a replay is a duplicate");
    for (std::uint32_t word = 2; word <= 3; ++word)
        cr_assert(session.on_frame(0, {FrameType::finish, 0, 1, word, word}, {}, world.now).ok());
    cr_assert_not(session.on_frame(0, {FrameType::finish, 0, 1, 4, 4}, {}, world.now).ok(),
                  "control frames are few");
    cr_assert_not(session.on_frame(0, {FrameType::open, 8, 1, 1, 5}, eight, world.now).ok());
}

// Random frames, with the field values of real frames: the session detects violations, and works again after
// being abandoned.
Test(session, survives_random_frames) {
    std::mt19937_64 random(23);
    const std::vector<std::byte> much(kMaxPayload, std::byte{1});
    Settings settings = small();
    World world(settings, 23);
    Side& left = world.left;
    left.deaf = true;
    for (unsigned i = 0; i < 200'000; ++i) {
        std::array<std::byte, kHeaderSize> bytes;
        put_header(bytes.data(), {static_cast<FrameType>(random() % 11),
                                  random() % 4 == 0 ? 20 : static_cast<std::uint32_t>(random() % 10),
                                  static_cast<ChannelId>(random() % 6),
                                  static_cast<std::uint32_t>(random() % 4), random() % 40});
        const auto header = get_header(bytes);
        if (!header) continue;
        // The simulated processes handle only opens of 20 bytes: a window and a preface of 16 bytes.
        if (header->type == FrameType::open && header->length != 20) continue;
        Bytes payload = Bytes(much).first(header->length);
        left.ends.clear();
        for (ChannelId id = 0; id < 6; ++id) left.ends[id];
        if (!left.session->on_frame(0, *header, payload, world.now).ok()) {
            left.session->abandon();
            left.session->stream_up(0, world.now);
        }
        while (left.session->next(0, world.now) != nullptr) left.session->written(0, 1);
    }
    cr_assert_gt(left.session->counters().violations, 1000U);
    cr_assert_gt(left.session->counters().accepted, 100U);
    left.session->abandon();
    cr_assert_eq(left.session->channels(), 0U);
    cr_assert_eq(left.pool.free, settings.pool);
}

Test(session, invalid_headers) {
    std::array<std::byte, kHeaderSize> bytes;
    put_header(bytes.data(), {FrameType::data, 5, 7, 9, 11});
    const auto header = get_header(bytes);
    cr_assert(header.has_value() && header->type == FrameType::data && header->length == 5 &&
              header->channel == 7 && header->order == 9 && header->sequence == 11);
    cr_assert_not(get_header(Bytes(bytes).first(23)).has_value());
    const FrameHeader wrong[] = {
        {FrameType::data, kMaxPayload + 1, 1, 1, 1},
        {FrameType::data, 0, 1, 1, 1},
        {FrameType::data, 5, 1, 1, 0},
        {FrameType::finish, 5, 1, 1, 1},
        {FrameType::credit, 7, 1, 1, 1},
        {FrameType::ping, 1, 1, 1, 1},
        {FrameType{0}, 1, 1, 1, 1},
        {FrameType{11}, 1, 1, 1, 1},
    };
    for (const FrameHeader& one : wrong) {
        put_header(bytes.data(), one);
        cr_assert_not(get_header(bytes).has_value());
    }
}

Test(hello, travels_in_104_bytes) {
    Hello hello;
    hello.session = 0x123456789abcdef0;
    hello.stream = 3;
    hello.streams = 4;
    hello.window = 65536;
    hello.from = "lyon";
    hello.to = "rennes";
    HelloBytes bytes = encode_hello(hello);
    cr_assert(decode_hello(bytes) == hello);
    cr_assert_not(decode_hello(Bytes(bytes).first(kHelloSize - 1)).has_value());
    for (const std::size_t damaged : {0U, 4U, 6U, 71U}) {
        HelloBytes copy = bytes;
        copy[damaged] ^= std::byte{0x40};
        cr_assert_not(decode_hello(copy).has_value(), "byte %zu", damaged);
    }
    hello.session = 0;
    cr_assert_not(decode_hello(encode_hello(hello)).has_value());
}

Test(hello, binds_sessions_that_belong_together) {
    const auto bound = [](std::uint64_t to, std::uint64_t session, std::uint64_t peer_session) {
        Hello hello;
        hello.session = session;
        hello.peer_session = peer_session;
        return bind(7, to, hello);
    };
    cr_assert(bound(0, 1, 0) == Binding::good);
    cr_assert(bound(0, 1, 7) == Binding::refused, "the acceptor has forgotten");
    cr_assert(bound(0, 1, 6) == Binding::refused);
    cr_assert(bound(1, 1, 0) == Binding::good, "another stream, before the first welcome came");
    cr_assert(bound(1, 1, 7) == Binding::good);
    cr_assert(bound(1, 1, 6) == Binding::refused);
    cr_assert(bound(1, 2, 0) == Binding::renewed, "the connector has forgotten");
    cr_assert(bound(1, 2, 7) == Binding::refused);
}
