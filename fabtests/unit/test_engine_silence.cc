// How long a member waits for what it has heard nothing of, and how much it then asks for.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

constexpr std::size_t kLongBytes = 20'000;  // bytes: 15 fragments

// Messages of that length are kept for repair, as short ones are.
engine::GroupConfig config_keeping_long() {
    engine::GroupConfig config = config_of(2, 8);
    config.retransmit_bytes = kLongBytes;
    config.initial_rtt = Nanoseconds::from_us(50);
    return config;
}

Packet end_of(std::uint64_t operation, std::uint64_t total = 0) {
    return {.kind = Kind::release,
            .sender = 0,
            .operation = operation,
            .total = total,
            .payload = {},
            .key = {},
            .epoch = {}};
}

std::vector<Out> questions(const std::vector<Out>& all) {
    std::vector<Out> result;
    for (const Out& out : all)
        if (out.kind == Effect::Kind::message && out.header.kind == Kind::ask) result.push_back(out);
    return result;
}

}  // namespace

TestSuite(silence, .timeout = 300);

// Whoever asks for all of it gets by message what is multicast a moment later.
Test(silence, of_a_long_message_that_was_not_heard_one_fragment_is_asked_for) {
    Bench bench(config_keeping_long());
    bench.join();
    ByteString buffer(kLongBytes);
    cr_assert(bench.broadcast(0, buffer).ok());
    // Its client asks for all of it, and it does not hand that on.
    bench.message({.kind = Kind::ask,
                   .sender = 3,
                   .operation = 0,
                   .total = kLongBytes,
                   .payload = {std::byte{0xff}, std::byte{0x7f}},
                   .key = {},
                   .epoch = {}});
    cr_assert_eq(questions(bench.drain()).size(), 0U);
    const auto own = questions(bench.pass(Nanoseconds::from_ms(100)));
    cr_assert_eq(own.size(), 1U);
    cr_assert_eq(index_of(own[0].header.fragment), 0U);
    cr_assert(own[0].payload == ByteString{std::byte{1}});
    // Something of it has come: now it was sent, and the client's question goes on.
    const ByteString sent = content(kLongBytes);
    bench.datagram(bench.fragment(0, 0, 0, sent));
    bench.datagram(bench.fragment(0, 0, 14, sent));
    bench.message({.kind = Kind::ask,
                   .sender = 3,
                   .operation = 0,
                   .total = kLongBytes,
                   .payload = {std::byte{0xff}, std::byte{0x7f}},
                   .key = {},
                   .epoch = {}});
    const auto onward = questions(bench.drain());
    cr_assert_eq(onward.size(), 1U);
    cr_assert(onward[0].payload == (ByteString{std::byte{0xff}, std::byte{0x1f}}), "1 to 13");
}

// Where messages bring everything unasked, whoever has waited in vain asks for all of it.
Test(silence, who_is_patient_asks_for_all_of_it) {
    engine::GroupConfig config = config_keeping_long();
    config.repair = engine::Repair::push;
    Bench bench(config);
    bench.join();
    ByteString buffer(kLongBytes);
    cr_assert(bench.broadcast(0, buffer).ok());
    const auto own = questions(bench.pass(Nanoseconds::from_ms(200)));
    cr_assert_eq(own.size(), 1U);
    cr_assert(own[0].payload == (ByteString{std::byte{0xff}, std::byte{0x7f}}));
    bench.datagram(bench.fragment(0, 0, 3, content(kLongBytes)));
    bench.drain();
}

// The result of a long vector comes milliseconds later than the end of a barrier, and many barriers between
// teach nobody to ask for it sooner.
Test(silence, results_of_long_vectors_are_not_measured_with_barriers) {
    engine::GroupConfig config = config_keeping_long();
    config.gather_bytes = kLongBytes;  // in one piece
    Bench bench(config);
    bench.join();
    const ByteString sent = content(kLongBytes);
    const Nanoseconds quick = Nanoseconds::from_us(50), slow = Nanoseconds::from_ms(4);
    ByteString buffer(kLongBytes);
    std::uint64_t number = 0;
    // Where nothing is lost nobody asks for longer than that: one loss.
    cr_assert(bench.barrier().ok());
    cr_assert_eq(questions(bench.pass(Nanoseconds::from_ms(20))).size(), 1U);
    Packet answer = end_of(number++);
    answer.kind = Kind::data;
    answer.sender = 1;
    bench.message(answer);
    for (int round = 0; round < 16; ++round) {
        for (int i = 0; i < 3; ++i) {
            cr_assert(bench.barrier().ok());
            bench.now = bench.now + quick;
            bench.datagram(end_of(number++));
        }
        bench.drain();
        cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
        const auto early = questions(bench.pass(slow));
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
