// How long a member waits for a message without any packet of it, and how much the NAK then requests.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

constexpr std::size_t kLongBytes = 20'000;  // 15 fragments

// Returns a configuration in which messages of kLongBytes are kept for repair, as short ones are.
engine::GroupConfig config_keeping_long() {
    engine::GroupConfig config = config_of(2, 8);
    config.retransmit_bytes = kLongBytes;
    config.initial_rtt = Nanoseconds::from_us(50);
    return config;
}

// A NAK by which member 3 requests all of broadcast 0.
Packet nak_packet() {
    return plain(Kind::nak, 3, 0, 0, kLongBytes, {std::byte{0xff}, std::byte{0x7f}});
}

}  // namespace

TestSuite(silence, .timeout = 300);

// A member that has received nothing of a long message requests one fragment: after a NAK for all, messages
// would deliver what the root multicasts a moment later.
Test(silence, of_a_long_unreceived_message_one_fragment_is_requested) {
    Bench bench(config_keeping_long());
    bench.join();
    ByteString buffer(kLongBytes);
    cr_assert(bench.broadcast(0, buffer).ok());
    // Another member requests the whole message from this one, which does not forward the NAK.
    bench.message(nak_packet());
    cr_assert_eq(of_kind(bench.drain(), Kind::nak).size(), 0U);
    const auto own = of_kind(bench.pass(Nanoseconds::from_ms(100)), Kind::nak);
    cr_assert_eq(own.size(), 1U);
    cr_assert_eq(index_of(own[0].header.fragment), 0U);
    cr_assert(own[0].payload == ByteString{std::byte{1}});
    // A fragment arrives, so the root has begun to send: the member now forwards the other member's NAK.
    const ByteString sent = content(kLongBytes);
    bench.datagram(bench.fragment(0, 0, 0, sent));
    bench.datagram(bench.fragment(0, 0, 14, sent));
    bench.message(nak_packet());
    const auto onward = of_kind(bench.drain(), Kind::nak);
    cr_assert_eq(onward.size(), 1U);
    cr_assert(onward[0].payload == (ByteString{std::byte{0xff}, std::byte{0x1f}}), "1 to 13");
}

// Where messages deliver data unasked, a member requests the whole message after its timeout.
Test(silence, after_a_longer_wait_all_fragments_are_requested) {
    engine::GroupConfig config = config_keeping_long();
    config.repair = engine::Repair::push;
    Bench bench(config);
    bench.join();
    ByteString buffer(kLongBytes);
    cr_assert(bench.broadcast(0, buffer).ok());
    const auto own = of_kind(bench.pass(Nanoseconds::from_ms(200)), Kind::nak);
    cr_assert_eq(own.size(), 1U);
    cr_assert(own[0].payload == (ByteString{std::byte{0xff}, std::byte{0x7f}}));
    // A multicast also arrives. drain() would detect a member that can no longer send NAKs.
    bench.datagram(bench.fragment(0, 0, 3, content(kLongBytes)));
    bench.drain();
}

// The result of a long vector arrives milliseconds after a barrier would, and many barriers in between must
// not shorten its timeout.
Test(silence, results_of_long_vectors_are_not_measured_with_barriers) {
    engine::GroupConfig config = config_keeping_long();
    config.gather_bytes = kLongBytes;  // in one piece
    Bench bench(config);
    bench.join();
    const ByteString sent = content(kLongBytes);
    const Nanoseconds quick = Nanoseconds::from_us(50), slow = Nanoseconds::from_ms(4);
    ByteString buffer(kLongBytes);
    std::uint64_t number = 0;
    // Without losses the timeout is longer; one loss ends this.
    cr_assert(bench.barrier().ok());
    cr_assert_eq(of_kind(bench.pass(Nanoseconds::from_ms(20)), Kind::nak).size(), 1U);
    bench.message(plain(Kind::data, 1, number++));
    for (int round = 0; round < 16; ++round) {
        for (int i = 0; i < 3; ++i) {
            cr_assert(bench.barrier().ok());
            bench.now = bench.now + quick;
            bench.datagram(plain(Kind::release, 0, number++));
        }
        bench.drain();
        cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
        const auto early = of_kind(bench.pass(slow), Kind::nak);
        cr_assert(round < 4 || early.empty(), "round %d", round);
        for (std::uint32_t index = 0; index < 15; ++index) {
            Packet part = bench.fragment(0, number, index, sent);
            part.kind = Kind::release;
            bench.datagram(part);
        }
        ++number;
        bench.drain();
    }
}
