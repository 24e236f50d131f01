// Packets matching the prediction take a fast path, within one turn. The fast path and the slow path must
// have the same effect.
#include <cstdlib>
#include <functional>
#include <random>

#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

constexpr std::uint32_t kFragmentSize = 1424, kGroup = 5, kReceiver = 1, kCount = 180;
// The clocks of a pair differ by a nanosecond for each packet of a turn; deadlines that differ do so by
// milliseconds.
constexpr Nanoseconds kMaxApart = Nanoseconds::from_us(100);

// Two engines that get the same packets: `quick` many per turn, `slow` one per turn.
struct Pair {
    explicit Pair(const engine::GroupConfig& config, std::uint32_t fragments)
        : quick(config),
          slow(config),
          message(content(std::uint64_t{fragments} * kFragmentSize - 5)),
          got_quick(message.size()),
          got_slow(message.size()) {
        quick.join();
        slow.join();
        cr_assert(quick.broadcast(0, got_quick).ok() && slow.broadcast(0, got_slow).ok());
        turn();
    }
    void datagram(const Packet& packet, std::size_t flipped_bit = 0) {
        for (Bench* bench : {&quick, &slow}) {
            ByteString bytes = bench->bytes_of(packet);
            if (flipped_bit > 0) bytes[flipped_bit / 8] ^= std::byte{1} << static_cast<int>(flipped_bit % 8);
            bench->engine.on_packet(bytes, bench->now);
        }
        slow.now = slow.now + Nanoseconds{1};
    }
    void repair(std::uint32_t index) {
        Packet data = quick.fragment(0, 0, index, message);
        data.kind = Kind::data;
        for (Bench* bench : {&quick, &slow}) bench->message(data);
    }
    void fragment(std::uint32_t index) { datagram(quick.fragment(0, 0, index, message)); }
    void turn() { pause(Nanoseconds{1000}); }
    void pause(Nanoseconds time) {
        quick.now = slow.now = std::max(quick.now, slow.now);
        const auto from_quick = quick.pass(time), from_slow = slow.pass(time);
        cr_assert_eq(from_quick.size(), from_slow.size());
        for (std::size_t i = 0; i < from_quick.size(); ++i) {
            const Out &one = from_quick[i], &other = from_slow[i];
            cr_assert(one.kind == other.kind && one.to == other.to && one.status == other.status &&
                      one.header.kind == other.header.kind && one.header.fragment == other.header.fragment &&
                      one.header.total == other.header.total && one.payload == other.payload);
            completed += one.kind == Effect::Kind::complete;
        }
        for (const engine::NamedCounter& counter : engine::kCounters)
            cr_assert_eq(quick.engine.counters().*counter.member, slow.engine.counters().*counter.member,
                         "%s", counter.name);
        cr_assert_eq(quick.engine.arrived(kFirst), slow.engine.arrived(kFirst));
        const Nanoseconds one = quick.engine.next_deadline(), other = slow.engine.next_deadline();
        cr_assert_lt(std::abs(one.value - other.value), kMaxApart.value,
                     "one will send a NAK, or report, before the other");
    }
    void expect_all() {
        turn();
        cr_assert_eq(quick.engine.arrived(kFirst), message.size());
        cr_assert(got_quick == message && got_slow == message);
        // The members supplied by this member, and members with a false claim to be supplied, report done,
        // too.
        for (std::uint32_t rank = kReceiver + 1; rank < kGroup; ++rank)
            for (Bench* bench : {&quick, &slow})
                bench->message({.kind = Kind::done,
                                .sender = rank,
                                .total = message.size(),
                                .payload = {},
                                .key = {},
                                .epoch = {}});
        turn();
        cr_assert_eq(completed, 1U);
    }

    Bench quick, slow;
    const ByteString message;
    ByteString got_quick, got_slow;
    std::size_t completed = 0;
};

// In a third of the cases, sends a packet besides the next one.
void disturb(Pair& pair, std::mt19937& random, std::uint32_t& next, std::vector<std::uint32_t>& holes) {
    const auto below = [&](std::size_t end) { return static_cast<std::uint32_t>(random() % end); };
    Packet packet = pair.quick.fragment(0, 0, next, pair.message);
    switch (below(40)) {
        case 0:
            return pair.fragment(below(next + 1));  // a duplicate, or the next one
        case 1:
            for (std::uint32_t left = 1 + below(4); left > 0 && next < kCount - 10; --left)
                holes.push_back(next++);
            return;
        case 2:
            if (!holes.empty()) {
                pair.fragment(holes.back());
                holes.pop_back();
            }
            return;
        case 3:
            packet.sender = 2;
            return pair.datagram(packet);
        case 4:
            packet.total += kFragmentSize;
            return pair.datagram(packet);
        case 5:
            packet.epoch = Epoch{4};
            return pair.datagram(packet);
        case 6:
            return pair.datagram(packet, 8 * (wire::kHeaderBytes + below(kFragmentSize)) + below(8));
        case 7:
            for (; next < kCount - 10 && below(4) > 0; ++next) {
                packet = pair.quick.fragment(0, 0, next, pair.message);
                packet.total |= wire::kRepeatFlag;
                pair.datagram(packet);
            }
            return;
        case 8:
            packet.total |= wire::kPartialFlag;
            return pair.datagram(packet);
        case 9:
            packet.kind = Kind::release;
            return pair.datagram(packet);
        case 10:
            packet.payload.pop_back();
            return pair.datagram(packet);
        case 11:
            return pair.repair(std::min(next + below(3), kCount - 1));
        case 12:
            return pair.turn();
        case 13:
            return pair.pause(Nanoseconds::from_ms(60));  // long enough for a NAK for the missing fragments
        case 14:
            for (std::size_t left = below(holes.size() + 1); left > 0; --left, holes.erase(holes.begin()))
                pair.fragment(holes.front());
            return below(2) == 0 ? pair.turn() : pair.pause(Nanoseconds::from_ms(60));
        default:
            break;
    }
}

}  // namespace

TestSuite(prediction, .timeout = 300);

Test(prediction, the_fast_path_does_what_the_slow_one_does) {
    for (const std::uint32_t window : {64U, 67U, 256U})
        for (std::uint32_t seed = 0; seed < 300; ++seed) {
            engine::GroupConfig config = config_of(kReceiver, kGroup);
            config.window = window;
            config.checkpoint_every = 1;  // each checkpoint reports losses
            Pair pair(config, kCount);
            std::mt19937 random(seed);
            std::vector<std::uint32_t> holes;
            for (std::uint32_t next = 0; next < kCount;) {
                disturb(pair, random, next, holes);
                if (next < kCount) pair.fragment(next++);
                while (next > 60 && !holes.empty()) {  // a real root would wait
                    pair.repair(holes.back());
                    holes.pop_back();
                }
            }
            for (const std::uint32_t hole : holes) pair.repair(hole);
            pair.expect_all();
        }
}

// Each packet matches the prediction except for one field.
Test(prediction, what_is_nearly_as_predicted_is_refused) {
    const std::function<void(Packet&)> changes[] = {
        [](Packet& one) { one.sender = 2; },         [](Packet& one) { one.total += 1; },
        [](Packet& one) { one.epoch = Epoch{9}; },   [](Packet& one) { one.key = GroupKey{1}; },
        [](Packet& one) { one.payload.pop_back(); }, [](Packet& one) { one.kind = Kind::release; }};
    for (const auto& change : changes) {
        Pair pair(config_of(kReceiver, kGroup), 50);
        for (std::uint32_t index = 0; index < 5; ++index) pair.fragment(index);
        Packet packet = pair.quick.fragment(0, 0, 5, pair.message);
        change(packet);
        for (int i = 0; i < 2; ++i) pair.datagram(packet);
        pair.turn();
        cr_assert_eq(pair.quick.engine.arrived(kFirst), 5U * kFragmentSize);
    }
}

// After a refused packet nothing is predicted.
Test(prediction, forged_packets_cannot_continue_the_roots_operations) {
    const std::function<void(Packet&)> changes[] = {
        [](Packet& one) { one.sender = 3; }, [](Packet& one) { one.total += 1; },
        [](Packet& one) { one.kind = Kind::release; }, [](Packet& one) { one.kind = Kind::relay; }};
    for (const auto& change : changes) {
        Pair pair(config_of(kReceiver, kGroup), 50);
        pair.fragment(0);
        for (std::uint32_t index = 0; index < 10; ++index) {
            Packet packet = pair.quick.fragment(0, 0, index, pair.message);
            packet.payload.assign(packet.payload.size(), std::byte{0xee});
            change(packet);
            pair.datagram(packet);
        }
        pair.turn();
        cr_assert_eq(pair.quick.engine.arrived(kFirst), std::uint64_t{kFragmentSize});
        for (std::uint32_t index = 1; index < 50; ++index) pair.fragment(index);
        pair.expect_all();
    }
}
